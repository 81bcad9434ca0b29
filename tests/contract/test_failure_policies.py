"""What the CRDs reject and accept in ``runPolicy.failurePolicy``."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.jobs import definition_of, job, policy, refusal
from tests.mpi_v2beta1 import mpi_job

RULES = "spec.runPolicy.failurePolicy.rules"


def failures(*rules: JSON, **fields: object) -> JSON:
    return policy(failurePolicy={"rules": list(rules), **fields})


def rule(**fields: object) -> JSON:
    return {"action": "RestartJob", **fields}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(failures({"name": "a"}), f"{RULES}[0].action: Required value", id="no action"),
        pytest.param(
            failures(rule(action="Retry")),
            f'{RULES}[0].action: Unsupported value: "Retry"',
            id="action",
        ),
        pytest.param(
            failures(rule(name="a"), rule(name="b"), rule(name="a")),
            f"{RULES}: Invalid value: names of rules must be unique",
            id="two rules with the same name",
        ),
        pytest.param(
            failures(*[rule()] * 21),
            f"{RULES}: Too many: 21: must have at most 20 items",
            id="rules",
        ),
        pytest.param(
            failures(rule(onExitCodes={"operator": "In", "values": [1, 0]})),
            f"{RULES}[0].onExitCodes: Invalid value: 0 is not a failure: remove it from values",
            id="exit code of a success",
        ),
        pytest.param(
            failures(rule(onExitCodes={"operator": "In", "values": [256]})),
            f"{RULES}[0].onExitCodes.values[0] in body should be less than or equal to 255",
            id="exit code",
        ),
        pytest.param(
            failures(rule(onExitCodes={"operator": "In", "values": []})),
            f"{RULES}[0].onExitCodes.values in body should have at least 1 items",
            id="no exit codes",
        ),
        pytest.param(
            failures(rule(onExitCodes={"values": [1]})),
            f"{RULES}[0].onExitCodes.operator: Required value",
            id="no operator",
        ),
        pytest.param(
            failures(rule(onPodConditions=[{"status": "True"}])),
            f"{RULES}[0].onPodConditions[0].type: Required value",
            id="condition without a type",
        ),
        pytest.param(
            failures(rule(onCauses=["Bug"])),
            f'{RULES}[0].onCauses[0]: Unsupported value: "Bug"',
            id="cause",
        ),
        pytest.param(
            failures(rule(targetReplicas=["Boss"])),
            f"{RULES}[0].targetReplicas[0] in body should match '^(?i:master|worker)$'",
            id="replica type",
        ),
        pytest.param(
            failures(maxRestarts=-1),
            "failurePolicy.maxRestarts in body should be greater than or equal to 0",
            id="fewer restarts than none",
        ),
        pytest.param(
            failures(restartStrategy="InPlace"),
            'restartStrategy: Unsupported value: "InPlace"',
            id="strategy",
        ),
        pytest.param(
            policy(failurePolicy={}, backoffLimit=3),
            "spec.runPolicy.backoffLimit: Invalid value: cannot be combined with "
            "failurePolicy: use its maxRestarts",
            id="two limits",
        ),
    ],
)
async def test_invalid_failure_policy_is_rejected(api: Api, change: JSON, said: str) -> None:
    await api.define(definition_of("PyTorchJob"))
    assert said in await refusal(api, job("PyTorchJob", change))


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob", "JAXJob", "MPIJob", "MXJob"])
async def test_largest_failure_policy_is_accepted(api: Api, kind: str) -> None:
    await api.define(definition_of(kind))
    largest = [
        rule(
            name=f"{index:036}",
            onExitCodes={
                "containerName": "c" * 63, "operator": "NotIn", "values": list(range(255))
            },
            onPodConditions=[{"type": "t" * 316, "status": "Unknown"}] * 20,
            onCauses=["Node"] * 13,
            targetReplicas=["Worker"] * 16,
        )
        for index in range(20)
    ]  # fmt: skip
    counts = {"Worker": 1, "Server": 1, "Scheduler": 1} if kind == "MXJob" else {"Worker": 1}
    change = failures(*largest, maxRestarts=5, restartStrategy="Recreate")
    if kind == "MPIJob":
        # Of v2beta1, whose launcher belongs to a Job.
        wire = {**mpi_job(1, policy=change["runPolicy"]), "metadata": {"name": "a"}}
    else:
        wire = job(kind, change, counts)
    assert await refusal(api, wire) == ""
