"""Reading ScaleIn and ScaleOut, and the messages of invalid ones."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlctl.api.interning import Interner
from dlctl.api.json_types import JSON
from dlctl.api.objects.scalers import ScalerObject, ScalerPhase, ScalerStatus, Script
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from tests.builders import NOW
from tests.dialects.et_operator.manifests import read_scaler, scale_in, scale_out, scaler_manifest
from tests.dialects.statuses import CONDITIONS

TEXT = st.text(max_size=8)
ONE_OF_THEM = ".spec.toDelete.count or .spec.toDelete.podNames, only one of them should be set"
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
STATUSES = st.builds(
    ScalerStatus,
    phase=st.sampled_from(ScalerPhase),
    conditions=CONDITIONS,
    pods=st.lists(TEXT, max_size=3).map(tuple),
)
of_both = pytest.mark.parametrize("resource", [SCALE_INS, SCALE_OUTS])


def test_scale_in_by_count() -> None:
    scaler = read_scaler(scale_in(backoffLimit=2))
    assert (scaler.full_name, scaler.is_scale_out, scaler.job) == (
        "ScaleIn:ml/change",
        False,
        "linear",
    )
    assert (scaler.count, scaler.pods, scaler.backoff_limit, scaler.invalid_reason) == (
        1,
        None,
        2,
        "",
    )
    assert scaler.created == NOW


def test_scale_in_by_name_takes_each_once() -> None:
    scaler = read_scaler(scale_in(toDelete={"podNames": ["b", "a", "b"]}))
    assert (scaler.count, scaler.pods, scaler.invalid_reason) == (None, ("b", "a"), "")


@pytest.mark.parametrize(
    ("to_delete", "count", "pods"),
    [
        pytest.param({"count": 2, "podNames": []}, 2, None, id="no names"),
        pytest.param({"count": 0, "podNames": ["a"]}, None, ("a",), id="no number"),
    ],
)
def test_scale_in_may_have_the_other_field_with_its_zero_value(
    to_delete: JSON, count: int | None, pods: tuple[str, ...] | None
) -> None:
    scaler = read_scaler(scale_in(toDelete=to_delete))
    assert (scaler.count, scaler.pods, scaler.invalid_reason) == (count, pods, "")


def test_scale_out_may_have_a_min_count() -> None:
    scaler = read_scaler(scale_out(toAdd={"count": 3, "minCount": 2}, timeout=90))
    assert (scaler.full_name, scaler.is_scale_out) == ("ScaleOut:ml/change", True)
    assert (scaler.count, scaler.min_count, scaler.timeout_s, scaler.script) == (3, 2, 90, None)


def test_script_timeout_is_a_minute_by_default() -> None:
    env = [{"name": "B", "value": "x y"}, {"name": "A"}]
    scaler = read_scaler(scale_in(script="/bin/leave.sh", env=env))
    assert scaler.script == Script("/bin/leave.sh", timeout_s=60, env=(("B", "x y"), ("A", "")))
    again = read_scaler(scale_out(script="/bin/join.sh", timeout=5))
    assert again.script == Script("/bin/join.sh", timeout_s=5)


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        pytest.param(scale_in(toDelete=None), ONE_OF_THEM, id="nothing to delete"),
        pytest.param(scale_in(toDelete={"podNames": []}), ONE_OF_THEM, id="nobody to delete"),
        pytest.param(scale_in(toDelete={"count": 0}), ONE_OF_THEM, id="none"),
        pytest.param(
            scale_in(toDelete={"count": -1, "podNames": ["a"]}), ONE_OF_THEM, id="less than none"
        ),
        pytest.param(
            scale_in(toDelete={"count": 1, "podNames": ["a"]}), ONE_OF_THEM, id="number and names"
        ),
        pytest.param(
            scale_in(toDelete={"podNames": [5]}),
            ".spec.toDelete.podNames: must be a list of names",
            id="no names",
        ),
        pytest.param(scale_out(toAdd=None), ".spec.toAdd.count shouldn't be empty", id="no toAdd"),
        pytest.param(scale_out(toAdd={}), ".spec.toAdd.count shouldn't be empty", id="no count"),
        pytest.param(
            scale_out(toAdd={"count": -1}),
            ".spec.toAdd.count should be greater than 0",
            id="fewer than none",
        ),
        pytest.param(
            scale_out(toAdd={"count": 2, "minCount": 3}),
            ".spec.toAdd.minCount: is 3, but must be between 1 and 2",
            id="more than all",
        ),
        pytest.param(
            scale_out(timeout=0),
            ".spec.timeout: is 0, but must be between 1 and 2147483647",
            id="no time",
        ),
        pytest.param(
            scale_out(backoffLimit=-1),
            ".spec.backoffLimit: is -1, but must be between 0 and 2147483647",
            id="limit",
        ),
        pytest.param(
            scale_in(script="/a.sh", env=[{"name": "A;rm"}]),
            ".spec.env[0].name: is 'A;rm', but must be the name of a variable: letters, digits "
            "and '_'",
            id="variable",
        ),
        pytest.param(
            scale_in(selector=None),
            ".spec.selector.name: is missing: name the TrainingJob to scale",
            id="no job",
        ),
        pytest.param(
            scaler_manifest("ScaleIn", None),
            ".spec.selector.name: is missing: name the TrainingJob to scale",
            id="no spec",
        ),
        pytest.param(
            scaler_manifest("ScaleIn", 5), ".spec: must be an object, not 5", id="no object"
        ),
        pytest.param(
            scale_in(script="/a.sh", env=[{"name": "A"}] * 1001),
            ".spec.env: has 1001 variables, but may have 1000: use a file",
            id="too many variables",
        ),
        pytest.param(
            scale_in(toDelete={"podNames": ["a" * 99] * 6000}),
            ".spec: has 612056 bytes, but a request may have 65536: remove by count",
            id="too large",
        ),
    ],
)
def test_impossible_request_has_an_invalid_reason(wire: Any, reason: str) -> None:
    assert read_scaler(wire).invalid_reason == reason


@pytest.mark.parametrize("make", [scale_out, scale_in])
def test_request_with_too_large_variables_says_to_shorten_them(make: Any) -> None:
    env = [{"name": f"A{number}", "value": "x" * 600} for number in range(900)]
    scaler = read_scaler(make(script="/a.sh", env=env))
    assert scaler.invalid_reason.endswith(": shorten the variables, or use a file")


@pytest.mark.parametrize(
    ("selector", "job"), [({"name": "linear"}, "linear"), ({"name": None}, ""), (None, "")]
)
def test_request_that_is_too_large_names_its_job_if_it_can(selector: Any, job: str) -> None:
    scaler = read_scaler(scale_in(selector=selector, toDelete={"podNames": ["a" * 99] * 6000}))
    assert scaler.job == job
    assert scaler.invalid_reason.endswith(": remove by count")


def test_stores_keep_of_a_request_that_is_too_large_only_what_is_reported() -> None:
    wire = scale_in(toDelete={"podNames": ["a" * 99] * 6000})
    wire["metadata"]["annotations"] = {"large": "x" * 100_000}
    whole = msgspec.json.decode(msgspec.json.encode(wire), type=ScalerObject)
    kept = whole.for_store(Interner())
    assert len(msgspec.json.encode(kept)) < 1000
    assert scalers.read(kept, SCALE_INS) == scalers.read(whole, SCALE_INS)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"spec": {"selector": {"name": "x" * 1_000_000}}}, id="name of the job"),
        pytest.param({"omittedSpec": {"job": "x" * 1_000_000}}, id="a field of its own"),
    ],
)
def test_stores_keep_no_long_texts_of_a_request(parts: Any) -> None:
    wire = msgspec.json.encode({**scale_in(), **parts})
    kept = msgspec.json.decode(wire, type=ScalerObject).for_store(Interner())
    assert len(msgspec.json.encode(kept)) < 1000
    assert scalers.read(kept, SCALE_INS).job in ("", "linear")


def test_malformed_selector_of_a_request_that_is_too_large_is_named() -> None:
    scaler = read_scaler(scale_in(selector=5, toDelete={"podNames": ["a" * 99] * 6000}))
    assert "$.selector" in scaler.invalid_reason


FORBIDDEN_SCRIPTS = [
    "/proc/self/environ",
    "//proc//self/environ",
    "/./proc/1/environ",
    "  /proc/self/environ",
    "proc/self/environ",
    "./proc",
    "/opt/../proc/self/environ",
    "../../proc/self/fd/0",
    "/dev/stdin",
    "/dev",
]


@pytest.mark.parametrize("path", FORBIDDEN_SCRIPTS)
def test_path_of_a_process_file_is_rejected_as_a_script(path: str) -> None:
    reason = ".spec.script: must be the path of a script: not under /proc or /dev, and without '..'"
    assert read_scaler(scale_in(script=path)).invalid_reason == reason


@pytest.mark.parametrize("path", ["/opt/proc/x.sh", "/devel/a..b.sh", "leave.sh", "/process"])
def test_other_paths_are_accepted_as_scripts(path: str) -> None:
    assert read_scaler(scale_in(script=path)).invalid_reason == ""


def test_stored_script_timeout_above_the_maximum_is_capped() -> None:
    scaler = read_scaler(scale_out(script="/bin/join.sh", timeout=2**31 - 1))
    assert scaler.script == Script("/bin/join.sh", timeout_s=3600)
    assert scaler.timeout_s == 3600


def test_invalid_request_still_names_its_job() -> None:
    assert read_scaler(scale_in(toDelete=None)).job == "linear"


@settings(max_examples=60)
@given(
    spec=st.dictionaries(
        st.sampled_from(["selector", "toAdd", "toDelete", "env", "script", "timeout"]), JSON_VALUES
    ),
    status=JSON_VALUES,
)
def test_scaler_with_any_spec_and_status_is_read(spec: Any, status: Any) -> None:
    for kind in ("ScaleIn", "ScaleOut"):
        read_scaler(scaler_manifest(kind, spec, status))


@of_both
@settings(max_examples=30)
@given(status=STATUSES)
def test_status_is_read_back(resource: Any, status: ScalerStatus) -> None:
    wire = scalers.write_status(status, resource)
    raw = msgspec.Raw(msgspec.json.encode(wire))
    assert scalers.read_status(raw, resource) == status


def test_status_has_the_fields_that_et_operators_crd_requires() -> None:
    bare = {"conditions": [], "replicaStatuses": {}, "restartCount": 0}
    assert scalers.write_status(ScalerStatus(), SCALE_INS) == bare
    chosen = ScalerStatus(ScalerPhase.SCALING, pods=("a",))
    assert scalers.write_status(chosen, SCALE_INS) == {
        **bare, "phase": "Scaling", "toDeletePods": ["a"],
    }  # fmt: skip
    assert scalers.write_status(chosen, SCALE_OUTS)["addPods"] == ["a"]
