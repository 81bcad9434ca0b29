"""Updates of batch/v1 Jobs: what stays as created, and what may change while suspended."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract import version_marks
from tests.contract.api import Api
from tests.contract.batch_jobs import created, outcome, path, rejection

T1 = "2026-01-01T00:00:00Z"
SUSPENDED = {"suspend": True}
STOPPED = [{"type": "Suspended", "status": "True"}]
TEMPLATE = "spec.template: Invalid value: OBJECT: field is immutable"
POD = "spec.template.spec: Invalid value: OBJECT: field is immutable"
NODE_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
    }
}
POD_AFFINITY = {
    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}]}
}


def pod(**spec: object) -> JSON:
    return {"template": {"spec": spec}}


def labelled(**labels: str | None) -> JSON:
    return {"template": {"metadata": {"labels": labels}}}


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        pytest.param(
            {},
            {
                "parallelism": 2,
                "backoffLimit": 2,
                "activeDeadlineSeconds": 3,
                "ttlSecondsAfterFinished": 4,
                "podReplacementPolicy": "Failed",
                "manualSelector": True,
                "suspend": True,
            },
            id="limits",
        ),
        pytest.param(SUSPENDED, pod(nodeSelector={"a": "b"}), id="node selector"),
        pytest.param(
            SUSPENDED, pod(tolerations=[{"key": "a", "operator": "Exists"}]), id="tolerations"
        ),
        pytest.param(SUSPENDED, pod(schedulingGates=[{"name": "a/b"}]), id="gates"),
        pytest.param(SUSPENDED, pod(affinity=NODE_AFFINITY), id="affinity to nodes"),
        pytest.param(SUSPENDED, labelled(z="y"), id="labels"),
        pytest.param(
            SUSPENDED, {"template": {"metadata": {"annotations": {"a": "b"}}}}, id="annotations"
        ),
        pytest.param(
            SUSPENDED, {"suspend": False, **pod(nodeSelector={"a": "b"})}, id="and resumed at once"
        ),
    ],
)
async def test_change_is_accepted(api: Api, spec: JSON, change: JSON) -> None:
    await created(api, **spec)
    answer = await api.patch(path(api, "a"), {"spec": change})
    assert outcome(api, answer) == ""
    assert contains(answer.body["spec"], change)


def contains(whole: object, part: object) -> bool:
    if not isinstance(part, dict):
        return whole == part
    return isinstance(whole, dict) and all(
        contains(whole.get(key), value) for key, value in part.items()
    )


@pytest.mark.parametrize(
    ("spec", "change", "causes"),
    [
        pytest.param(
            {},
            {"completions": 2},
            ["spec.completions: Invalid value: 2: field is immutable"],
            id="completions",
        ),
        pytest.param(
            {},
            {"managedBy": None},
            ["spec.managedBy: Invalid value: null: field is immutable"],
            id="manager",
        ),
        pytest.param({}, labelled(z="y"), [TEMPLATE], id="labels while running"),
        pytest.param(
            {}, pod(nodeSelector={"a": "b"}), [TEMPLATE], id="node selector while running"
        ),
        pytest.param(
            {},
            {**SUSPENDED, **pod(nodeSelector={"a": "b"})},
            [TEMPLATE],
            id="node selector with the suspension",
        ),
        pytest.param(
            SUSPENDED,
            labelled(**{"job-name": None}),
            [
                "spec.template.metadata.labels[job-name]: Required value: must be 'a'",
            ],
            id="label of the selector",
        ),
        pytest.param(
            SUSPENDED,
            pod(priorityClassName="x"),
            [POD],
            id="priority",
            marks=version_marks.RESOURCES_OF_SUSPENDED_JOBS,
        ),
        pytest.param(
            SUSPENDED,
            pod(affinity=POD_AFFINITY),
            [POD],
            id="affinity to pods",
            marks=version_marks.RESOURCES_OF_SUSPENDED_JOBS,
        ),
    ],
)
async def test_change_is_rejected(api: Api, spec: JSON, change: JSON, causes: list[str]) -> None:
    await created(api, **spec)
    answer = await api.patch(path(api, "a"), {"spec": change})
    assert outcome(api, answer) == rejection(*causes)


@version_marks.RESOURCES_OF_SUSPENDED_JOBS
async def test_resources_of_a_suspended_job_change(api: Api) -> None:
    made = await created(api, suspend=True)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {"cpu": "2"}}
    answer = await api.patch(path(api, "a"), {"spec": pod(containers=[container])})
    assert outcome(api, answer) == ""


@pytest.mark.parametrize(
    ("status", "said"),
    [
        pytest.param({"startTime": T1}, rejection(TEMPLATE), id="not yet stopped"),
        pytest.param(
            {"active": 1},
            rejection(TEMPLATE),
            id="with pods left",
            marks=version_marks.RESOURCES_OF_SUSPENDED_JOBS,
        ),
        pytest.param(
            {"startTime": T1, "conditions": STOPPED},
            "",
            id="stopped",
            marks=version_marks.RESOURCES_OF_SUSPENDED_JOBS,
        ),
    ],
)
async def test_place_of_a_suspended_job_that_has_started_depends_on_its_pods(
    api: Api, status: JSON, said: str
) -> None:
    await created(api, suspend=True, status=status)
    answer = await api.patch(path(api, "a"), {"spec": pod(nodeSelector={"a": "b"})})
    assert outcome(api, answer) == said


async def test_manifest_without_the_generated_selector_is_no_update(api: Api) -> None:
    made = await created(api)
    for name in ("selector", "template"):
        del made["spec"][name]
    made["spec"]["template"] = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}}
    answer = await api.put(path(api, "a"), made)
    assert "spec.selector: Invalid value: null: field is immutable" in outcome(api, answer)


async def test_status_is_not_written_with_the_spec(api: Api) -> None:
    await created(api)
    answer = await api.patch(path(api, "a"), {"status": {"active": 3}})
    assert answer.body["status"] == {}


async def test_suspension_is_applied_by_another_manager(api: Api) -> None:
    await created(api)
    config = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"suspend": True},
    }
    answer = await api.patch(
        path(api, "a"),
        config,
        "application/apply-patch+yaml",
        fieldManager="queue",
        force="true",
    )
    assert answer.body["spec"]["suspend"] is True
    owners = {
        each["manager"]: each["fieldsV1"] for each in answer.body["metadata"]["managedFields"]
    }
    assert owners["queue"] == {"f:spec": {"f:suspend": {}}}


async def test_container_of_a_suspended_job_keeps_its_name(api: Api) -> None:
    job = await created(api, suspend=True)
    del job["spec"]["template"]["spec"]["containers"][0]["name"]
    answer = await api.put(path(api, "a"), job)
    assert answer.code == 422
    assert "spec.template.spec.containers[0].name: Required value" in answer.body["message"]
