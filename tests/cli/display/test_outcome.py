from collections.abc import Sequence

import attrs
import pytest
import yaml

from dlctl.api.meta import ObjectKey
from dlctl.api.status.job_status import Failure, JobPhase, JobState
from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict
from dlctl.cli.display.outcome import RunEnd, closing_lines, explaining_runs, status_yaml
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ContainerExit, ContainerRun, ReplicaProgress
from tests.builders import NOW

RUN = ContainerRun("uid-0", "mxnet")
WORKER_0 = ReplicaProgress(
    "worker-0", "worker", pod="linear-worker-x-0", phase="Running", started=NOW, run=RUN
)
WORKER_1 = ReplicaProgress(
    "worker-1", "worker", pod="linear-worker-x-1", phase="Failed", started=NOW
)
JOB = JobProgress(
    "mxjob",
    ObjectKey("ml", "linear"),
    phase=JobPhase.DONE,
    state=JobState.FAILED,
    replicas=(WORKER_0, WORKER_1),
    elapsed_s=12.4,
)
RUNNING = attrs.evolve(JOB, phase=JobPhase.RUNNING)
SUCCEEDED = attrs.evolve(JOB, state=JobState.SUCCEEDED, replicas=(WORKER_0,))
FAILURE = Failure("worker-1", "linear-worker-x-1", "Error", "exit code 1 (general error)", NOW, 1)
VERDICT = Verdict(
    Cause.USER_CODE,
    Confidence.MEDIUM,
    "KeyError: 'x'",
    NOW,
    replica="worker-1",
    pod="linear-worker-x-1",
    node="localhost",
    rank=1,
    exit_code=1,
    collateral=("worker-0",),
    collateral_count=1,
)
LOGS = {"worker-0": ["epoch 1"], "worker-1": ["Traceback", "KeyError: 'x'"]}
CRASHING = attrs.evolve(
    WORKER_0,
    phase="CrashLoopBackOff",
    restarts=3,
    exits=tuple(ContainerExit(attrs.evolve(RUN, number=n), 1) for n in range(4)),
)


def last_lines(_job: JobProgress, replica: str, _count: int) -> Sequence[str]:
    return LOGS.get(replica, ())


def closing(job: JobProgress, end: RunEnd | None = None) -> list[str]:
    return list(closing_lines(job, end or RunEnd(max_restarts=3), last_lines))


def test_success_is_one_line() -> None:
    assert closing(SUCCEEDED) == ["mxjob ml/linear succeeded in 12 s"]


def test_success_names_replicas_that_never_started() -> None:
    never = tuple(
        ReplicaProgress(f"worker-{n}", "worker", pod="p", phase="PodInitializing") for n in (1, 2)
    )
    job = attrs.evolve(SUCCEEDED, replicas=(WORKER_0, *never))
    assert closing(job) == ["mxjob ml/linear succeeded in 12 s; worker-1, worker-2 never started"]
    # One whose run was too short to be seen has run.
    done = attrs.evolve(never[0], phase="Succeeded")
    job = attrs.evolve(SUCCEEDED, replicas=(WORKER_0, done))
    assert closing(job) == ["mxjob ml/linear succeeded in 12 s"]


def test_success_names_replicas_that_failed() -> None:
    never = ReplicaProgress("worker-2", "worker", pod="p", phase="PodInitializing")
    job = attrs.evolve(SUCCEEDED, replicas=(WORKER_0, WORKER_1, never))
    assert closing(job) == [
        "mxjob ml/linear succeeded in 12 s; worker-1 failed; worker-2 never started"
    ]


def test_cause_of_a_failure_is_the_first_one_with_its_replicas_log() -> None:
    assert closing(attrs.evolve(JOB, failure=FAILURE)) == [
        (
            "mxjob ml/linear failed after 12 s: worker-1 (pod linear-worker-x-1): "
            "exit code 1 (general error)"
        ),
        "last lines of worker-1:",
        "  | Traceback",
        "  | KeyError: 'x'",
    ]


@pytest.mark.parametrize(
    ("failure", "attempts", "first"),
    [
        pytest.param(attrs.evolve(FAILURE, exit_code=7), (), 1, id="failure"),
        pytest.param(
            attrs.evolve(FAILURE, replica="", exit_code=None),
            (Attempt(0, NOW, NOW, attrs.evolve(VERDICT, exit_code=7)),),
            1,
            id="verdict",
        ),
        pytest.param(attrs.evolve(FAILURE, replica="worker-0", exit_code=7), (), 2, id="another"),
        pytest.param(attrs.evolve(FAILURE, exit_code=9), (), 2, id="unknown run"),
        pytest.param(None, (), 2, id="no failure"),
    ],
)
def test_run_that_ended_as_the_first_cause_says_explains_more_than_the_last(
    failure: Failure | None, attempts: Sequence[Attempt], first: int
) -> None:
    runs = [attrs.evolve(RUN, number=number) for number in range(3)]
    # The last one was ended with the job.
    exits = [ContainerExit(run, code) for run, code in zip(runs, (7, 7, 143), strict=True)]
    replica = attrs.evolve(WORKER_1, run=runs[2], exits=tuple(exits))
    job = attrs.evolve(JOB, replicas=(replica,), failure=failure, attempts=tuple(attempts))
    assert explaining_runs(job, "worker-1")[0] == runs[first]


def test_last_run_explains_a_job_that_has_not_failed() -> None:
    runs = [ContainerRun("uid-1", "mxnet", number) for number in range(2)]
    exits = [ContainerExit(run, code) for run, code in zip(runs, (1, 2), strict=True)]
    replica = attrs.evolve(WORKER_1, phase="Running", run=runs[1], exits=tuple(exits))
    attempts = (Attempt(0, NOW, NOW, VERDICT), Attempt(1, NOW))
    job = attrs.evolve(RUNNING, replicas=(replica,), attempts=attempts)
    assert explaining_runs(job, "worker-1")[0] == runs[1]


def test_headline_of_a_failure_is_its_first_cause_in_a_sentence() -> None:
    failed = attrs.evolve(JOB, failure=FAILURE, attempts=(Attempt(0, NOW, NOW, VERDICT),))
    assert closing(failed) == [
        (
            "mxjob ml/linear failed after 12 s: worker-1 (rank 1): KeyError: 'x' "
            "(exit code 1, user code)"
        ),
        "  ended with it: worker-0",
        "last lines of worker-1:",
        "  | Traceback",
        "  | KeyError: 'x'",
    ]


def test_failure_of_the_whole_job_follows_its_first_cause() -> None:
    failure = attrs.evolve(FAILURE, replica="", pod="", message="no restart is left")
    attempts = (Attempt(0, NOW, NOW, attrs.evolve(VERDICT, collateral_count=0)),)
    lines = closing(attrs.evolve(JOB, failure=failure, attempts=attempts))
    assert "worker-1 (rank 1): KeyError: 'x'" in lines[0]
    assert lines[1:3] == ["  no restart is left", "last lines of worker-1:"]


def test_long_lines_do_not_move_the_cause_off_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOGS, "worker-1", ["x" * 16_384] * 20)
    lines = closing(attrs.evolve(JOB, failure=FAILURE))
    assert len(lines) == 22
    assert {len(line) for line in lines[2:]} == {404}


@pytest.mark.parametrize("executed", [True, False])
def test_program_that_has_written_nothing_is_named(executed: bool) -> None:
    end = ContainerExit(RUN, 139, not_executed=not executed)
    silent = ReplicaProgress("worker-7", "worker", phase="Failed", exits=(end,))
    failure = attrs.evolve(FAILURE, replica="worker-7")
    lines = closing(attrs.evolve(JOB, failure=failure, replicas=(silent,)))
    assert lines[1:] == ["worker-7 has written nothing"] * executed


def test_last_words_in_the_verdict_stand_for_a_missing_log() -> None:
    verdict = attrs.evolve(
        VERDICT,
        replica="worker-7",
        confidence=Confidence.LOW,
        message="init container fetch: exit code 1: general error\nthe bucket is missing",
    )
    lines = closing(attrs.evolve(JOB, failure=FAILURE, attempts=(Attempt(0, NOW, NOW, verdict),)))
    assert lines[0].endswith(
        "worker-7 (rank 1): init container fetch: exit code 1: general error (probably user code)"
    )
    assert lines[2:] == ["last lines of worker-7:", "  | the bucket is missing"]


def test_cause_of_an_invalid_job_is_the_field_and_the_fix() -> None:
    invalid = attrs.evolve(JOB, phase=JobPhase.FAILED, reason="spec.x: is missing")
    assert closing(invalid) == ["mxjob ml/linear failed after 12 s: spec.x: is missing"]


def test_failure_of_the_whole_job_shows_what_its_replicas_did_last() -> None:
    deadline = attrs.evolve(FAILURE, replica="", pod="", message="deadline exceeded")
    assert closing(attrs.evolve(JOB, failure=deadline)) == [
        "mxjob ml/linear failed after 12 s: the job: deadline exceeded",
        "last lines of worker-0:",
        "  | epoch 1",
        "last lines of worker-1:",
        "  | Traceback",
        "  | KeyError: 'x'",
    ]


def test_replica_that_crashes_again_and_again_is_the_cause_with_each_exit_code() -> None:
    job = attrs.evolve(RUNNING, replicas=(CRASHING, WORKER_1))
    assert closing(job)[:3] == [
        (
            "mxjob ml/linear failed after 12 s: worker-0 (pod linear-worker-x-0) was restarted "
            "3 times; exit code 1 (general error) each time; --max-restarts allows 3"
        ),
        "last lines of worker-0:",
        "  | epoch 1",
    ]


def test_replica_whose_program_cannot_be_executed_cannot_start() -> None:
    ends = tuple(ContainerExit(attrs.evolve(RUN, number=n), 128, not_executed=True) for n in (0, 1))
    job = attrs.evolve(RUNNING, replicas=(attrs.evolve(CRASHING, exits=ends), WORKER_1))
    first = closing(job)[0]
    assert first == (
        "mxjob ml/linear failed after 12 s: worker-0 (pod linear-worker-x-0) cannot start"
    )


def test_restarts_of_the_failed_replica_are_counted_with_their_exit_codes() -> None:
    exits = tuple(
        ContainerExit(attrs.evolve(RUN, number=n), code) for n, code in ((0, 137), (1, 1))
    )
    again = attrs.evolve(WORKER_1, restarts=1, exits=exits)
    lines = closing(attrs.evolve(JOB, failure=FAILURE, replicas=(WORKER_0, again)))
    assert lines[1] == "  worker-1 was restarted 1 time; exit codes 137, 1"


def test_job_that_took_too_long_shows_the_state_of_each_replica() -> None:
    running = attrs.evolve(RUNNING, notice="a gang waits")
    assert closing(running, RunEnd(timeout_s=90.0)) == [
        "mxjob ml/linear has not finished: timed out after 1m30s, it is Running: a gang waits",
        "  worker-0 (pod linear-worker-x-0): Running",
        "  worker-1 (pod linear-worker-x-1): Failed",
        "last lines of worker-0:",
        "  | epoch 1",
    ]


def test_interrupted_job_shows_the_log_of_a_replica_that_has_failed() -> None:
    job = attrs.evolve(RUNNING, replicas=(WORKER_1, attrs.evolve(CRASHING, restarts=1)))
    lines = closing(job, RunEnd(interrupted=True, max_restarts=None))
    assert lines[:2] == [
        "mxjob ml/linear has not finished: interrupted after 12 s, it is Running",
        (
            "  worker-0 (pod linear-worker-x-0): CrashLoopBackOff, was restarted 1 time; "
            "exit code 1 (general error) each time"
        ),
    ]
    assert lines[-2:] == ["last lines of worker-0:", "  | epoch 1"]


def test_interrupted_job_without_a_failure_shows_no_log() -> None:
    lines = closing(RUNNING, RunEnd(interrupted=True))
    assert not any("last lines" in line for line in lines)


def test_of_many_replicas_a_few_are_shown() -> None:
    many = tuple(attrs.evolve(WORKER_0, name=f"worker-{n}") for n in range(1000))
    assert len(closing(attrs.evolve(RUNNING, replicas=many), RunEnd(timeout_s=1.0))) < 20


def test_deleted_job_is_reported_as_such() -> None:
    assert closing(attrs.evolve(JOB, is_deleted=True)) == [
        "mxjob ml/linear was deleted before it finished"
    ]


def test_replica_that_was_killed_gets_a_hint() -> None:
    killed = attrs.evolve(
        VERDICT, message="exit code 137: killed (SIGKILL), no memory limit reported", exit_code=137
    )
    attempt = Attempt(0, NOW, NOW, killed)
    job = attrs.evolve(JOB, failure=FAILURE, attempts=(attempt,))
    assert "is this machine out of memory?" in closing(job)[-1]
    exits = tuple(attrs.evolve(end, exit_code=137) for end in CRASHING.exits)
    job = attrs.evolve(RUNNING, replicas=(attrs.evolve(CRASHING, restarts=4, exits=exits),))
    assert "is this machine out of memory?" in closing(job)[-1]


def test_probe_or_hook_for_which_the_node_ended_a_program_is_named() -> None:
    probe = "Liveness probe failed: command timed out"
    killed = attrs.evolve(VERDICT, message="exit code 137: killed (SIGKILL)", exit_code=137)
    replicas = (WORKER_0, attrs.evolve(WORKER_1, ended_by=probe))
    job = attrs.evolve(
        JOB, failure=FAILURE, replicas=replicas, attempts=(Attempt(0, NOW, NOW, killed),)
    )
    lines = closing(job)
    assert lines[2] == f"  the node ended its program: {probe}"
    # Memory has nothing to do with it.
    assert not any(line.startswith("hint: ") for line in lines)
    crashing = attrs.evolve(CRASHING, restarts=4, ended_by=probe)
    assert f"  the node ended its program: {probe}" in closing(
        attrs.evolve(RUNNING, replicas=(crashing,))
    )


def test_status_is_a_document_that_names_its_job() -> None:
    obj = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": "linear", "namespace": "ml", "uid": "1"},
        "spec": {},
    }
    documents = status_yaml({**obj, "status": {"state": "Succeeded"}}) + status_yaml(obj)
    first, second = yaml.safe_load_all(documents)
    assert first == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": "linear", "namespace": "ml"},
        "status": {"state": "Succeeded"},
    }
    assert second["status"] == {}
