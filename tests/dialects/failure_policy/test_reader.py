"""Reading ``failurePolicy`` in each form."""

from typing import Any

import pytest

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.policies.failure_policy import (
    ExitCodes,
    FailureAction,
    FailurePolicy,
    FailureRule,
    RestartStrategy,
)
from dlctl.api.status.verdict import Cause
from dlctl.errors import InvalidJobError
from tests.builders import (
    bare_job,
    make_job,
    training_job,
)
from tests.mpi_v2beta1 import mpi_job

RULES = "spec.runPolicy.failurePolicy.rules"


def pytorch_job(policy: JSON, **run_policy: Any) -> Job:
    wire = training_job("PyTorchJob", Master=1, Worker=2)
    wire["spec"]["runPolicy"] = {"failurePolicy": policy, **run_policy}
    return make_job(wire)


def refusal(policy: JSON, **run_policy: Any) -> str:
    with pytest.raises(InvalidJobError) as caught:
        pytorch_job(policy, **run_policy)
    return str(caught.value)


def test_absent_fields_have_jobsets_defaults() -> None:
    read = pytorch_job({}).run_policy.failure_policy
    assert read == FailurePolicy(0, RestartStrategy.BLOCKING_RECREATE, ())


def test_job_without_a_failure_policy_has_none() -> None:
    assert make_job(training_job("PyTorchJob", Worker=2)).run_policy.failure_policy is None


def test_stored_rule_without_exit_codes_matches_none() -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": []}}
    read = pytorch_job({"rules": [rule]}).run_policy.failure_policy
    assert read is not None
    assert read.rules == (FailureRule(FailureAction.FAIL_JOB, exit_codes=ExitCodes(frozenset())),)


def test_policy_is_read() -> None:
    rules = [
        {
            "name": "config",
            "action": "FailJob",
            "onExitCodes": {"containerName": "pytorch", "operator": "In", "values": [2, 42]},
            "targetReplicas": ["Master", "worker"],
        },
        {
            "action": "RestartReplicaAndIgnoreMaxRestarts",
            "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "X", "status": "False"}],
            "onCauses": ["Node", "Hardware"],
        },
        {"action": "RestartJob", "onExitCodes": {"operator": "NotIn", "values": [0, 1]}},
    ]
    wire = {"maxRestarts": 3, "restartStrategy": "Recreate", "rules": rules}
    assert pytorch_job(wire).run_policy.failure_policy == FailurePolicy(
        3,
        RestartStrategy.RECREATE,
        (
            FailureRule(
                FailureAction.FAIL_JOB,
                "config",
                exit_codes=ExitCodes(frozenset({2, 42}), container="pytorch"),
                target_replicas=frozenset({"master", "worker"}),
            ),
            FailureRule(
                FailureAction.RESTART_REPLICA_AND_IGNORE_MAX_RESTARTS,
                pod_conditions=(("DisruptionTarget", "True"), ("X", "False")),
                causes=frozenset({Cause.NODE, Cause.HARDWARE}),
            ),
            FailureRule(
                FailureAction.RESTART_JOB,
                exit_codes=ExitCodes(frozenset({0, 1}), is_negated=True),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        pytest.param({"rules": [{}]}, f"{RULES}[0]: has no action: give one", id="no action"),
        pytest.param(
            {"rules": [{"action": "Retry"}]},
            f"{RULES}[0].action: is 'Retry', but must be one of FailJob, RestartJob, "
            "RestartJobAndIgnoreMaxRestarts, RestartReplica, RestartReplicaAndIgnoreMaxRestarts",
            id="action",
        ),
        pytest.param(
            {"rules": [{"action": "FailJob", "name": "a"}] * 2},
            f"{RULES}: has two rules with the same name: rename one of them",
            id="two rules with the same name",
        ),
        pytest.param(
            {"rules": [{"action": "FailJob"}] * 21},
            f"{RULES}: has 21 entries: leave at most 20",
            id="too many rules",
        ),
        pytest.param({"rules": {}}, f"{RULES}: must be a list, not {{}}", id="no list"),
        pytest.param(
            {"rules": [{"action": "FailJob", "onExitCodes": {"values": [1]}}]},
            f"{RULES}[0].onExitCodes: has no operator: give In or NotIn",
            id="no operator",
        ),
        pytest.param(
            {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn"}}]},
            f"{RULES}[0].onExitCodes: has no values: list the exit codes",
            id="no exit codes",
        ),
        pytest.param(
            {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]},
            f"{RULES}[0].onExitCodes.values: has 0, which is not a failure: remove it",
            id="exit code of a success",
        ),
        pytest.param(
            {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [True]}}]},
            f"{RULES}[0].onExitCodes.values: has True, but exit codes must be from 0 to 255",
            id="exit code",
        ),
        pytest.param(
            {"rules": [{"action": "FailJob", "onPodConditions": [{}]}]},
            f"{RULES}[0].onPodConditions[0]: has no type: name a pod condition",
            id="condition without a type",
        ),
        pytest.param(
            {"rules": [{"action": "FailJob", "targetReplicas": ["PS"]}]},
            f"{RULES}[0].targetReplicas: has 'PS', which is not a replica type: use only Master, "
            "Worker",
            id="replica type",
        ),
        pytest.param(
            {"rules": [{"action": "FailJob", "name": "a" * 37}]},
            f"{RULES}[0].name: has 37 characters: shorten it to at most 36",
            id="long name",
        ),
    ],
)
def test_invalid_policy_is_rejected(policy: JSON, message: str) -> None:
    assert refusal(policy) == message


def bare_list(annotation: str) -> JSON:
    wire = bare_job(worker=2, scheduler=1)
    wire["metadata"]["annotations"] = {"dlctl.dev/failure-policy": annotation}
    return wire


def test_policy_of_a_bare_list_is_in_an_annotation() -> None:
    rules = '[{"action": "RestartReplica", "targetReplicas": ["worker"]}]'
    read = make_job(bare_list(f'{{"maxRestarts": 2, "rules": {rules}}}')).run_policy.failure_policy
    action = FailureAction.RESTART_REPLICA
    rule = FailureRule(action, target_replicas=frozenset({"worker"}))
    assert read == FailurePolicy(2, RestartStrategy.BLOCKING_RECREATE, (rule,))
    assert make_job(bare_job()).run_policy.failure_policy is None


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        pytest.param("maxRestarts: 2", "is not JSON: ", id="YAML"),
        pytest.param("[" * 100_000, "is not JSON: ", id="deep"),
        pytest.param("[]", "must be an object, not []", id="no object"),
    ],
)
def test_invalid_annotation_is_rejected(annotation: str, message: str) -> None:
    with pytest.raises(InvalidJobError) as caught:
        make_job(bare_list(annotation))
    field = "metadata.annotations[dlctl.dev/failure-policy]"
    assert str(caught.value).startswith(f"{field}: {message}")


def test_annotation_that_is_not_json_is_rejected_with_its_fix() -> None:
    with pytest.raises(InvalidJobError, match="write the policy as a JSON object"):
        make_job(bare_list("maxRestarts: 2"))


def test_invalid_rule_of_an_annotation_is_named() -> None:
    with pytest.raises(InvalidJobError, match=r"failure-policy\]\.rules\[0\]: has no action"):
        make_job(bare_list('{"rules": [{}]}'))


def test_backoff_limit_beside_it_is_rejected() -> None:
    assert refusal({}, backoffLimit=3) == (
        "spec.runPolicy.backoffLimit: cannot be combined with failurePolicy: use its maxRestarts"
    )


def test_backoff_limit_in_the_spec_itself_has_no_effect() -> None:
    wire = training_job("TFJob", Worker=2)
    wire["spec"] |= {"backoffLimit": 3, "runPolicy": {"failurePolicy": {}}}
    assert make_job(wire).run_policy.backoff_limit is None


def test_former_names_of_replica_types_are_read() -> None:
    wire = training_job("TFJob", Worker=2)
    rule = {"action": "FailJob", "targetReplicas": ["Eval"]}
    wire["spec"]["runPolicy"] = {"failurePolicy": {"rules": [rule]}}
    read = make_job(wire).run_policy.failure_policy
    assert read is not None
    assert read.rules[0].target_replicas == {"evaluator"}


def test_retries_of_a_launchers_job_cannot_be_combined_with_a_failure_policy() -> None:
    with pytest.raises(InvalidJobError, match=r"backoffLimit: cannot be combined"):
        make_job(mpi_job(2, policy={"failurePolicy": {}, "backoffLimit": 3}))
