import attrs

from dlctl.api.meta import ObjectKey
from dlctl.api.status.job_status import JobPhase, JobState
from dlctl.cli.display.diff import diff_lines
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ReplicaProgress

NEW = JobProgress("mxjob", ObjectKey("ml", "linear"))
WORKER = ReplicaProgress("worker-0", "worker", pod="linear-worker-0")
RUNNING = attrs.evolve(
    NEW, phase=JobPhase.RUNNING, replicas=(attrs.evolve(WORKER, phase="Running"),)
)


def test_unchanged_status_prints_no_line() -> None:
    assert list(diff_lines(RUNNING, RUNNING)) == []


def test_changed_job_and_replica_get_a_line_each() -> None:
    assert list(diff_lines(NEW, RUNNING)) == [
        "mxjob ml/linear: Running",
        "linear worker-0: Running, pod linear-worker-0",
    ]


def test_exit_code_comes_with_its_meaning_and_restarts_with_their_number() -> None:
    lost = attrs.evolve(WORKER, phase="Lost", exit_code=143, restarts=2)
    assert list(diff_lines(RUNNING, attrs.evolve(RUNNING, replicas=(lost,)))) == [
        "linear worker-0: Lost, exit code 143 (stopped (SIGTERM)), 2 restarts, pod linear-worker-0"
    ]


def test_last_line_of_a_job_has_its_state() -> None:
    done = attrs.evolve(RUNNING, phase=JobPhase.DONE, state=JobState.SUCCEEDED)
    assert list(diff_lines(RUNNING, done)) == ["mxjob ml/linear: Done, Succeeded"]


def test_notice_is_printed_once() -> None:
    noticed = attrs.evolve(RUNNING, notice="worker-0 waits: no such image")
    assert list(diff_lines(RUNNING, noticed)) == ["mxjob ml/linear: worker-0 waits: no such image"]
    assert list(diff_lines(noticed, noticed)) == []


def test_deletion_is_printed() -> None:
    assert list(diff_lines(RUNNING, attrs.evolve(RUNNING, is_deleted=True))) == [
        "mxjob ml/linear: deleted"
    ]
