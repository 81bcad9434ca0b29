"""Batch/v1 Jobs: defaults, the generated selector, and invalid ones."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.batch_jobs import (
    OTHER,
    batch_job,
    created,
    outcome,
    path,
    rejection,
    template,
    without_uid,
)

CONTAINER = {"name": "c", "image": "i"}
POD_LABELS = {
    "batch.kubernetes.io/controller-uid": "UID",
    "batch.kubernetes.io/job-name": "a",
    "controller-uid": "UID",
    "job-name": "a",
}
LABELS = "spec.template.metadata.labels"
RESTART = "spec.template.spec.restartPolicy"
MANAGER = "spec.managedBy"
MISMATCH = f"{LABELS}: Invalid value: OBJECT: `selector` does not match template `labels`"
NO_RESTART = f'{RESTART}: Required value: valid values: "OnFailure", "Never"'
NEGATIVE = "Invalid value: -1: must be greater than or equal to 0"
BY_A = {"matchLabels": {"a": "b"}}


async def test_defaults_and_selector_are_filled_in(api: Api) -> None:
    made = await created(api)
    spec = without_uid(made["spec"], made["metadata"]["uid"])
    # Older servers add a time that is not known.
    spec["template"]["metadata"].pop("creationTimestamp", None)
    assert spec == {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "managedBy": OTHER,
        "manualSelector": False,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "UID"}},
        "suspend": False,
        "template": {
            "metadata": {"labels": POD_LABELS},
            "spec": {
                "containers": [
                    {
                        **CONTAINER,
                        "imagePullPolicy": "Always",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Never",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
        },
    }
    assert made["status"] == {}
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        pytest.param({"parallelism": 2}, (2, None), id="parallelism"),
        pytest.param({"completions": 2}, (1, 2), id="completions"),
    ],
)
async def test_count_that_is_left_out_depends_on_the_other(
    api: Api, spec: JSON, counts: tuple[int, int | None]
) -> None:
    made = (await created(api, **spec))["spec"]
    assert (made["parallelism"], made.get("completions")) == counts


async def test_job_without_labels_gets_those_of_its_pods(api: Api) -> None:
    made = await created(api, template=template({"labels": {"a": "b"}}))
    labels = without_uid(made["metadata"]["labels"], made["metadata"]["uid"])
    assert labels == POD_LABELS | {"a": "b"}


async def test_job_keeps_its_own_labels(api: Api) -> None:
    spec = batch_job({"labels": {"x": "y"}}, template=template({"labels": {"a": "b"}}))
    made = await api.create(path(api), spec)
    assert made["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize(
    ("field", "value", "go_type"),
    [
        ("parallelism", 2**31, "int32"),
        ("backoffLimit", -(2**31) - 1, "int32"),
        ("activeDeadlineSeconds", 2**63, "int64"),
    ],
)
async def test_number_too_large_for_its_field_is_a_bad_request(
    api: Api, field: str, value: int, go_type: str
) -> None:
    answer = await api.post(path(api), batch_job(None, **{field: value}))
    assert api.failure_text(answer) == (
        '400 BadRequest: Job in version "v1" cannot be handled as a Job: json: cannot unmarshal '
        f"number {value} into Go struct field JobSpec.spec.{field} of type {go_type}"
    )


async def test_largest_numbers_are_kept(api: Api) -> None:
    made = await created(api, parallelism=2**31 - 1, activeDeadlineSeconds=2**63 - 1)
    spec = made["spec"]
    assert (spec["parallelism"], spec["activeDeadlineSeconds"]) == (2**31 - 1, 2**63 - 1)


async def test_generated_fields_belong_to_nobody(api: Api) -> None:
    made = await created(api)
    (entry,) = made["metadata"]["managedFields"]
    own = entry["fieldsV1"]["f:spec"]
    assert "f:selector" not in own
    assert list(own["f:template"]) == ["f:spec"]


async def test_templates_have_neither_requests_nor_host_ports_by_default(api: Api) -> None:
    container = {
        **CONTAINER,
        "ports": [{"containerPort": 1}],
        "resources": {"limits": {"cpu": "1"}},
    }
    made = await created(api, template=template(containers=[container], hostNetwork=True))
    (shown,) = made["spec"]["template"]["spec"]["containers"]
    assert shown["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert shown["resources"] == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(BY_A, id="labels"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            id="expressions",
        ),
    ],
)
async def test_manual_selector_is_kept(api: Api, selector: JSON) -> None:
    made = await created(
        api, manualSelector=True, selector=selector, template=template({"labels": {"a": "b"}})
    )
    assert made["spec"]["selector"] == selector
    assert made["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        pytest.param({"template": template(restartPolicy="Always")}, [NO_RESTART], id="always"),
        pytest.param(
            {"template": {"spec": {"containers": [CONTAINER]}}}, [NO_RESTART], id="no restarts"
        ),
        pytest.param(
            {"template": template(restartPolicy="Foo")},
            [
                (
                    f'{RESTART}: Unsupported value: "Foo": supported values: "Always", '
                    '"OnFailure", "Never"'
                ),
                f'{RESTART}: Unsupported value: "Foo": supported values: "OnFailure", "Never"',
            ],
            id="unknown restarts",
        ),
        pytest.param(
            {"template": {}},
            ["spec.template.spec.containers: Required value", NO_RESTART],
            id="no template",
        ),
        pytest.param(
            {
                "parallelism": -1,
                "completions": -1,
                "activeDeadlineSeconds": -1,
                "backoffLimit": -1,
                "ttlSecondsAfterFinished": -1,
            },
            [
                f"spec.{name}: {NEGATIVE}"
                for name in (
                    "parallelism",
                    "completions",
                    "activeDeadlineSeconds",
                    "backoffLimit",
                    "ttlSecondsAfterFinished",
                )
            ],
            id="negative",
        ),
        pytest.param(
            {"podReplacementPolicy": "Foo"},
            [
                (
                    'spec.podReplacementPolicy: Unsupported value: "Foo": supported values: '
                    '"Failed", "TerminatingOrFailed"'
                )
            ],
            id="replacement",
        ),
        pytest.param(
            {"completionMode": "Foo"},
            [
                (
                    'spec.completionMode: Unsupported value: "Foo": supported values: '
                    '"NonIndexed", "Indexed"'
                )
            ],
            id="mode",
        ),
        pytest.param(
            {"managedBy": "foo"},
            [
                (
                    f'{MANAGER}: Invalid value: "foo": must be a domain-prefixed path (such as '
                    '"acme.io/foo")'
                )
            ],
            id="manager without a domain",
        ),
        pytest.param({"managedBy": ""}, [f"{MANAGER}: Required value"], id="manager of no name"),
        pytest.param(
            {"managedBy": f"a.com/{'x' * 60}"},
            [f"{MANAGER}: Too long: may not be more than 63 bytes"],
            id="long manager",
        ),
        pytest.param(
            {"manualSelector": True, "selector": {"matchLabels": {"a": "c"}}},
            [MISMATCH],
            id="selector of others",
        ),
        pytest.param(
            {"manualSelector": True},
            ["spec.selector: Required value", MISMATCH],
            id="no manual selector",
        ),
        pytest.param(
            {"selector": BY_A | {"matchLabels": {"x": "y"}}},
            ["spec.selector: Invalid value: OBJECT: `selector` not auto-generated", MISMATCH],
            id="selector beside the generated one",
        ),
        pytest.param(
            {"template": template({"labels": {"job-name": "b"}})},
            [f"{LABELS}[job-name]: Invalid value: OBJECT: must be 'a'"],
            id="name of another job",
        ),
        pytest.param(
            {"template": template({"annotations": {"a b": "c"}})},
            [
                (
                    'spec.template.annotations: Invalid value: "a b": name part must consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character"
                )
            ],
            id="annotation",
        ),
    ],
)
async def test_invalid_job_is_rejected(api: Api, spec: JSON, causes: list[str]) -> None:
    spec = {"template": template({"labels": {"a": "b"}})} | spec
    answer = await api.post(path(api), batch_job(**spec))
    assert outcome(api, answer) == rejection(*causes)


async def test_jobs_are_listed_with_their_progress(api: Api) -> None:
    made = await created(api, parallelism=2)
    answer = await api.get(path(api), accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [column["name"] for column in answer.body["columnDefinitions"]] == [
        "Name",
        "Status",
        "Completions",
        "Duration",
        "Age",
        "Containers",
        "Images",
        "Selector",
    ]
    (row,) = answer.body["rows"]
    selector = f"batch.kubernetes.io/controller-uid={made['metadata']['uid']}"
    name, state, progress, duration, _, *wide = row["cells"]
    assert (name, state, progress, duration) == ("a", "Running", "0/1 of 2", "")
    assert wide == ["c", "i", selector]


async def test_jobs_are_selected_by_their_successes(api: Api) -> None:
    await created(api, status={"succeeded": 2})
    assert (await api.get(path(api), fieldSelector="status.successful=2")).names == ["a"]
    assert (await api.get(path(api), fieldSelector="status.successful=0")).names == []


async def test_put_creates_no_job(api: Api) -> None:
    answer = await api.put(path(api, "a"), batch_job())
    assert outcome(api, answer) == '404 NotFound: jobs.batch "a" not found'


async def test_put_needs_no_version(api: Api) -> None:
    made = await created(api)
    del made["metadata"]["resourceVersion"]
    made["spec"]["parallelism"] = 5
    answer = await api.put(path(api, "a"), made)
    assert (answer.code, answer.body["spec"]["parallelism"]) == (200, 5)
    assert answer.body["metadata"]["generation"] == 2


async def test_pods_are_orphaned_by_default(api: Api) -> None:
    await created(api)
    answer = await api.delete(path(api, "a"))
    assert answer.body["metadata"]["finalizers"] == ["orphan"]
    await api.wait_gone(path(api, "a"))


async def test_job_without_a_name_is_rejected(api: Api) -> None:
    answer = await api.post(path(api), batch_job({"name": ""}))
    assert api.failure_text(answer) == (
        '422 Invalid: [FieldValueRequired metadata.name] Job.batch "" is invalid: metadata.name: '
        "Required value: name or generateName is required"
    )
