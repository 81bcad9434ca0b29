"""The status of TrainingJobs: written like et-operator's, and read back."""

import datetime
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, ReplicaStatus, RestartRecord
from dlctl.api.status.membership import Membership, ScaleOperation
from dlctl.dialects.et_operator import training_status
from tests.builders import NOW
from tests.dialects.et_operator.manifests import read_job
from tests.dialects.statuses import REPLICA_NAMES

WRITTEN = "2026-01-01T12:00:00Z"
TEXT = st.text(max_size=8)
INDEX = st.integers(min_value=0, max_value=99_999)
INDEXES = st.lists(INDEX, max_size=5, unique=True).map(tuple)
COUNT = st.integers(min_value=0, max_value=9)
TIMES = st.datetimes(
    min_value=datetime.datetime(1970, 1, 1),
    max_value=datetime.datetime(2100, 1, 1),
    timezones=st.just(datetime.UTC),
).map(lambda time: time.replace(microsecond=0))
FLAG = st.booleans()
SCALINGS = st.none() | st.builds(ScaleOperation, FLAG, INDEXES, TIMES, TEXT, TEXT, COUNT, FLAG)
MEMBERSHIPS = st.builds(
    Membership, INDEXES, INDEXES, st.frozensets(INDEX, max_size=5), COUNT, SCALINGS, SCALINGS, COUNT
)
REPLICAS = st.builds(
    ReplicaStatus,
    type=st.just("worker"),
    state=st.just(JobState.UNKNOWN),
    count_by_state=st.dictionaries(
        st.sampled_from([JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED]), COUNT.filter(bool)
    ),
    completed_indexes=st.frozensets(INDEX, max_size=3),
    label_selector=TEXT,
)
STATUSES = st.builds(
    JobStatus,
    # The state follows from the conditions; these have none.
    phase=st.sampled_from([JobPhase.CREATING, JobPhase.RUNNING, JobPhase.RESTARTING]),
    state=st.just(JobState.RUNNING),
    reason=TEXT,
    replica_statuses=st.lists(REPLICAS, max_size=1).map(tuple),
    start_time=st.none() | TIMES,
    restarts=st.dictionaries(
        REPLICA_NAMES, st.builds(RestartRecord, COUNT, COUNT, TEXT, TEXT, TIMES), max_size=2
    ),
    observed_generation=COUNT,
    membership=st.none() | MEMBERSHIPS,
    job_restarts=COUNT,
    worker_name_prefix=st.just("linear-worker-"),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "phase",
    "conditions",
    "targetWorkers",
    "currentWorkers",
    "restartCount",
    "replicaStatuses",
]
STATE_FIELDS = ["phase", "membership", "restarts", "failure", "completedIndexes"]
MEMBERSHIP_FIELDS = ["retired", "observedReplicas", "scaling", "generation"]
SCALING_FIELDS = ["workers", "since", "scaleOut", "scaler", "uid", "failures", "done", "replaced"]


def read(wire: Any, job: str = "linear") -> JobStatus:
    return training_status.read(msgspec.Raw(msgspec.json.encode(wire)), job)


def condition(type_: str, status: str = "True") -> JSON:
    times = {"lastUpdateTime": WRITTEN, "lastTransitionTime": WRITTEN}
    return {"type": type_, "status": status, "message": "", **times}


def et_operator_status(phase: str, *conditions: JSON, **fields: Any) -> JSON:
    """Return a status as et-operator writes it."""
    counts = {"Launcher": {"active": 1}, "Worker": {"active": 2}}
    stated = {"conditions": list(conditions), "replicaStatuses": counts, "restartCount": 0}
    return {**stated, "phase": phase, "startTime": WRITTEN, **fields}


@settings(max_examples=50)
@given(status=STATUSES)
def test_what_is_written_is_read_back(status: JobStatus) -> None:
    wire = training_status.write(status)
    again = read(msgspec.to_builtins(wire))
    assert again == status
    assert training_status.write(again) == wire


@settings(max_examples=60)
@given(
    wire=st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES),
    memory=st.dictionaries(st.sampled_from(STATE_FIELDS), JSON_VALUES),
    membership=st.none() | st.dictionaries(st.sampled_from(MEMBERSHIP_FIELDS), JSON_VALUES),
    scaling=st.none() | st.dictionaries(st.sampled_from(SCALING_FIELDS), JSON_VALUES),
)
def test_status_with_any_values_is_read_and_written(
    wire: JSON, memory: JSON, membership: Any, scaling: Any
) -> None:
    if scaling is not None:
        membership = {**(membership or {}), "scaling": scaling}
    if membership is not None:
        memory = {**memory, "membership": membership}
    training_status.write(read({**wire, "dlctl": memory}))


@pytest.mark.parametrize("wire", [None, 5, "x", [], {}, {"dlctl": 5}])
def test_status_of_another_form_is_that_of_a_new_job(wire: Any) -> None:
    assert read(wire) == JobStatus(worker_name_prefix="linear-worker-")


def test_workers_are_written_as_pod_names() -> None:
    scaling = ScaleOperation(
        True, (3,), NOW, scaler="ScaleOut:ml/more", uid="u", failures=1, is_done=True
    )
    membership = Membership(
        (0, 2), (0,), frozenset({1}), observed_replicas=2, scaling=scaling, generation=7
    )
    status = attrs.evolve(
        read({}),
        phase=JobPhase.RUNNING,
        membership=membership,
        job_restarts=2,
        observed_generation=4,
    )
    assert msgspec.to_builtins(training_status.write(status)) == {
        "phase": "Scaling",
        "conditions": [],
        "replicaStatuses": {},
        "restartCount": 2,
        "targetWorkers": ["linear-worker-0", "linear-worker-2"],
        "currentWorkers": ["linear-worker-0"],
        "currentScaler": "ScaleOut:ml/more",
        "dlctl": {
            "phase": "Running",
            "observedGeneration": 4,
            "membership": {
                "observedReplicas": 2,
                "generation": 7,
                "retired": "1",
                "scaling": {
                    "scaleOut": True,
                    "workers": [3],
                    "since": WRITTEN,
                    "scaler": "ScaleOut:ml/more",
                    "uid": "u",
                    "failures": 1,
                    "done": True,
                },
            },
        },
    }


def test_negative_count_of_failures_counts_as_absent() -> None:
    scaling = {"workers": [3], "since": WRITTEN, "scaleOut": True, "failures": -(2**31)}
    membership = read(
        {"dlctl": {"phase": "Running", "membership": {"scaling": scaling}}}
    ).membership
    assert membership is not None
    assert membership.scaling is not None
    assert membership.scaling.failures == 0


@pytest.mark.parametrize(
    ("phase", "state", "word"),
    [
        (JobPhase.NEW, JobState.UNKNOWN, None),
        (JobPhase.CREATING, JobState.RUNNING, "Created"),
        (JobPhase.RUNNING, JobState.RUNNING, "Running"),
        (JobPhase.RESTARTING, JobState.RUNNING, "Created"),
        (JobPhase.SUSPENDED, JobState.UNKNOWN, "Suspended"),
        (JobPhase.CLEAN_UP, JobState.SUCCEEDED, "Succeeded"),
        (JobPhase.DONE, JobState.SUCCEEDED, "Succeeded"),
        (JobPhase.DONE, JobState.FAILED, "Failed"),
        (JobPhase.FAILED, JobState.FAILED, "Failed"),
    ],
)
def test_phase_is_that_of_et_operator(phase: JobPhase, state: JobState, word: str | None) -> None:
    assert training_status.write(JobStatus(phase, state)).get("phase") == word


@pytest.mark.parametrize(
    ("wire", "phase", "state"),
    [
        (et_operator_status("Created", condition("Created")), JobPhase.CREATING, JobState.RUNNING),
        (
            et_operator_status("Running", condition("WorkersReady"), condition("Running")),
            JobPhase.RUNNING,
            JobState.RUNNING,
        ),
        (
            et_operator_status("Scaling", condition("Running"), condition("ScaleOperation")),
            JobPhase.RUNNING,
            JobState.RUNNING,
        ),
        (
            et_operator_status("Succeeded", condition("Running", "False"), condition("Succeeded")),
            JobPhase.CLEAN_UP,
            JobState.SUCCEEDED,
        ),
        (
            et_operator_status("Failed", condition("Running", "False"), condition("Failed")),
            JobPhase.CLEAN_UP,
            JobState.FAILED,
        ),
        (
            et_operator_status("Suspended", condition("Suspended")),
            JobPhase.SUSPENDED,
            JobState.UNKNOWN,
        ),
        # A bug of et-operator: a finished job cannot be suspended, nor restart when resumed.
        (
            et_operator_status("Suspended", condition("Succeeded"), condition("Suspended")),
            JobPhase.CLEAN_UP,
            JobState.SUCCEEDED,
        ),
    ],
)
def test_phase_is_inferred_from_et_operators_status(
    wire: JSON, phase: JobPhase, state: JobState
) -> None:
    status = read(wire)
    assert status.written_by_other_operator
    assert (status.phase, status.state) == (phase, state)


def test_workers_of_et_operator_are_adopted() -> None:
    wire = et_operator_status(
        "Running",
        condition("Running"),
        targetWorkers=["linear-worker-0", "linear-worker-3"],
        currentWorkers=["linear-worker-3", "other-worker-1", "linear-worker-x", 5],
        restartCount=1,
    )
    job = read_job(status=wire, worker={"replicas": 7})
    assert job.status.membership == Membership(members=(0, 3), hosts=(3,), observed_replicas=7)
    assert job.status.job_restarts == 1
    (_, workers) = job.replica_specs
    assert workers.indexes == (0, 3)


def test_worker_missing_from_et_operators_status_is_adopted() -> None:
    wire = et_operator_status(
        "Running",
        condition("Running"),
        targetWorkers=["linear-worker-0"],
        currentWorkers=["linear-worker-0", "linear-worker-4"],
    )
    membership = read(wire).membership
    assert membership is not None
    assert (membership.members, membership.hosts) == ((0, 4), (0, 4))


def test_job_that_et_operator_has_not_started_has_no_workers() -> None:
    assert read(et_operator_status("Created", condition("Created"))).membership is None


def test_status_of_another_operator_gets_no_state_until_adopted() -> None:
    wire = et_operator_status("Running", condition("Running"), targetWorkers=["linear-worker-0"])
    again = training_status.write(read(wire))
    assert again["targetWorkers"] == ["linear-worker-0"]
    assert "dlctl" not in again
    assert read(msgspec.to_builtins(again)).written_by_other_operator


def test_conditions_keep_their_order() -> None:
    kept = tuple(Condition(t, True, "r", "m", NOW, NOW) for t in ("Scaling", "Running", "Created"))
    status = attrs.evolve(read({}), phase=JobPhase.RUNNING, conditions=kept)
    assert read(msgspec.to_builtins(training_status.write(status))).conditions == kept


def test_status_with_more_workers_than_a_job_may_have_is_cut() -> None:
    indexes = list(range(2 * training_status.MAX_MEMBERS))
    change = {"workers": [-1, 10**9, *indexes], "since": WRITTEN}
    wire = {
        "targetWorkers": [f"linear-worker-{index}" for index in indexes],
        "dlctl": {"membership": {"scaling": change}},
    }
    found = training_status.read(msgspec.Raw(msgspec.json.encode(wire)), "linear").membership
    assert found is not None
    assert found.scaling is not None
    assert found.members == tuple(range(training_status.MAX_MEMBERS))
    assert found.scaling.workers == tuple(range(training_status.MAX_MEMBERS - 2))
