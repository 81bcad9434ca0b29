import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Replica
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.api.status.membership import Membership
from dlctl.cli.display.progress import JobProgress, job_progress
from dlctl.cli.display.replica_progress import ReplicaProgress
from tests.builders import NOW, RUNNING, exited, job_object, kind_of, make_job, make_pod, mxjob
from tests.dialects.et_operator.manifests import GROUP, elastic_job
from tests.mpi_v2beta1 import mpi_job
from tests.reconcilers.launcher_job.builders import launcher_pod

WORKER = Replica("worker", 0)
JOB = make_job()
NEW = JobProgress("mxjob", JOB.key)


def look(*pods: Pod, before: JobProgress = NEW, **status: Any) -> JobProgress:
    return job_progress(kind_of(), job_object({**mxjob(), "status": status}), pods, before, NOW)


def worker(state: JobProgress) -> ReplicaProgress:
    found = state.replica("worker-0")
    assert found is not None
    return found


def with_uid(uid: str) -> dict[str, Any]:
    return {"uid": uid}


def test_replicas_are_in_the_order_of_the_spec() -> None:
    names = [replica.name for replica in look().replicas]
    assert names == ["scheduler-0", "server-0", "worker-0", "worker-1"]


def test_replica_without_a_pod_waits() -> None:
    assert worker(look()).phase == "Waiting"


def test_launcher_shows_the_newest_pod_of_its_batch_job() -> None:
    obj, kind = job_object(mpi_job()), kind_of("kubeflow.org/v2beta1", "MPIJob")
    pods = [launcher_pod("b"), launcher_pod("a", "Failed", age_s=9)]
    launcher = job_progress(kind, obj, pods, NEW, NOW).replica("launcher-0")
    assert launcher
    assert (launcher.pod, launcher.is_settled) == ("pi-launcher-b", False)


def test_duration_is_from_the_start_of_the_program_to_its_end() -> None:
    running = worker(look(make_pod(JOB, WORKER, state=RUNNING)))
    ended = worker(look(make_pod(JOB, WORKER, phase="Succeeded", state=exited(0))))
    later = NOW + datetime.timedelta(seconds=7)
    assert (running.elapsed_s(later), ended.elapsed_s(later)) == (7, 5)


@pytest.mark.parametrize(
    ("code", "phase"),
    [pytest.param(0, "Succeeded", id="success"), pytest.param(1, "Failed", id="failure")],
)
def test_end_of_a_program_shows_its_exit_code(code: int, phase: str) -> None:
    seen = worker(look(make_pod(JOB, WORKER, phase=phase, state=exited(code))))
    assert (seen.phase, seen.exit_code) == (phase, code)


def test_waiting_reason_of_a_container_is_shown_as_its_phase() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    pod = make_pod(JOB, WORKER, state=waiting, last_state=exited(137))
    assert worker(look(pod)).phase == "CrashLoopBackOff"


def test_end_of_a_program_is_shown_before_its_pod_has_the_phase() -> None:
    pod = make_pod(JOB, WORKER, phase="Running", state=exited(1), restart_policy="Never")
    seen = worker(look(pod))
    assert (seen.phase, seen.exit_code) == ("Error", 1)


def test_program_waiting_for_its_restart_has_ended_and_has_a_log() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    seen = worker(look(make_pod(JOB, WORKER, state=waiting, last_state=exited(137))))
    assert (seen.has_log, seen.may_write_log, seen.exit_code) == (True, False, 137)


def test_program_that_is_not_restarted_has_no_waiting_reason() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    pods = [make_pod(JOB, WORKER, state=waiting, last_state=exited(code)) for code in (137, 1)]
    seen = [worker(look(pod)) for pod in pods]
    assert [(one.phase, one.waiting_message) for one in seen] == [
        ("CrashLoopBackOff", "back-off 10s"),
        ("Failed", ""),
    ]


def test_waiting_reason_disappears_when_the_container_runs() -> None:
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": "no command"}}
    before = look(make_pod(JOB, WORKER, phase="Pending", state=waiting))
    after = look(make_pod(JOB, WORKER, state=RUNNING), before=before)
    assert [worker(state).waiting_message for state in (before, after)] == ["no command", ""]


def test_observed_exit_outlives_the_pod() -> None:
    seen = look(make_pod(JOB, WORKER, phase="Failed", state=exited(1)))
    gone = look(before=seen, phase="Done", state="Failed")
    assert worker(gone) == worker(seen)


def test_deleting_a_pod_does_not_change_its_exit() -> None:
    failed = make_pod(JOB, WORKER, phase="Failed", state=exited(1))
    leaving = make_pod(
        JOB,
        WORKER,
        phase="Failed",
        state=exited(1),
        metadata={"deletionTimestamp": NOW.isoformat()},
    )
    assert worker(look(leaving, before=look(failed))).phase == "Failed"


def test_replica_running_at_clean_up_is_shown_as_stopped() -> None:
    seen = look(make_pod(JOB, WORKER, state=RUNNING))
    gone = look(before=seen, phase="Done", state="Failed")
    assert worker(gone).phase == "Stopped"
    assert gone.is_settled


def test_restarts_include_those_in_place_and_new_pods() -> None:
    first = look(make_pod(JOB, WORKER, state=RUNNING))
    again = look(make_pod(JOB, WORKER, state=RUNNING, last_state=exited(137)), before=first)
    other = look(make_pod(JOB, WORKER, state=RUNNING, metadata=with_uid("next")), before=again)
    assert [worker(state).restarts for state in (first, again, other)] == [0, 1, 2]


def with_init(number: int, **state: Any) -> Pod:
    """Return a pod whose init container is in the given state, after ``number`` restarts."""
    init = {"name": "fetch", "restartCount": number, **state}
    waiting = {"waiting": {"reason": "PodInitializing"}}
    return make_pod(JOB, WORKER, phase="Pending", state=waiting, initContainerStatuses=[init])


CRASHED = {
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
    "lastState": exited(137),
}


def test_failures_of_an_init_container_are_restarts_of_its_replica() -> None:
    first = look(with_init(0, state=RUNNING))
    again = look(with_init(1, state=RUNNING, lastState=exited(137)), before=first)
    waits = look(with_init(1, **CRASHED), before=again)
    assert [worker(state).restarts for state in (first, again, waits)] == [0, 1, 1]
    seen = worker(waits)
    assert (seen.init_restarts, seen.ended) == (1, NOW)
    assert (seen.phase, seen.init_container) == ("CrashLoopBackOff", "fetch")
    assert [(end.run.container, end.run.number, end.exit_code) for end in seen.exits] == [
        ("fetch", 0, 137),
        ("fetch", 1, 137),
    ]
    # The program itself has no log.
    assert not seen.has_log


def test_pod_that_replaces_one_whose_init_container_failed_restarts_that() -> None:
    failed = look(with_init(0, state=exited(137)))
    again = look(make_pod(JOB, WORKER, metadata=with_uid("next")), before=failed)
    lost = look(make_pod(JOB, WORKER, metadata=with_uid("third")), before=again)
    seen = [(worker(one).restarts, worker(one).init_restarts) for one in (failed, again, lost)]
    assert seen == [(0, 0), (1, 1), (2, 1)]


def test_init_container_that_runs_is_what_a_replica_waits_for() -> None:
    seen = worker(look(with_init(0, state=RUNNING)))
    assert (seen.phase, seen.waiting_message) == ("PodInitializing", "init container fetch runs")


def test_failures_of_an_init_container_explain_nothing_once_the_program_runs() -> None:
    waits = look(with_init(1, **CRASHED))
    runs = worker(look(make_pod(JOB, WORKER, state=RUNNING), before=waits))
    assert (runs.restarts, runs.exits, runs.init_container) == (1, (), "")


def test_init_container_that_cannot_be_executed_cannot_start() -> None:
    end = {"terminated": {**exited(128)["terminated"], "reason": "StartError"}}
    seen = worker(look(with_init(0, state=end)))
    assert [one.not_executed for one in seen.exits] == [True]


def test_job_is_finished_only_in_its_last_phase() -> None:
    cleaning = look(phase="CleanUp", state="Succeeded")
    done = look(phase="Done", state="Succeeded")
    assert (cleaning.is_finished, cleaning.has_succeeded) == (False, False)
    assert (done.is_finished, done.has_succeeded) == (True, True)


def test_deleted_job_has_not_succeeded() -> None:
    gone = attrs.evolve(look(phase="Done", state="Succeeded"), is_deleted=True)
    assert (gone.is_finished, gone.has_succeeded) == (True, False)


def test_invalid_job_shows_its_reason() -> None:
    manifest = mxjob()
    manifest["spec"]["replicaSpecs"] = []
    manifest["status"] = {"phase": "Failed", "state": "Failed", "reason": "spec: is empty"}
    seen = job_progress(kind_of(), job_object(manifest), (), NEW, NOW)
    assert (seen.phase, seen.state) == (JobPhase.FAILED, JobState.FAILED)
    assert (seen.reason, seen.is_finished) == ("spec: is empty", True)


@pytest.mark.parametrize(
    ("type_", "notice"),
    [
        pytest.param("Waiting", "worker-0 waits", id="blocked"),
        pytest.param("Restarting", "worker-0 waits", id="restarting"),
        pytest.param("Running", "", id="nothing the matter"),
    ],
)
def test_notice_is_why_the_job_does_not_run(type_: str, notice: str) -> None:
    condition = {"type": type_, "status": "True", "message": "worker-0 waits"}
    assert look(conditions=[condition]).notice == notice


def elastic(spent: list[int], *pods: Pod) -> JobProgress:
    """Return the progress of a TrainingJob with permanently failed workers."""
    wire = {**elastic_job(worker={"replicas": 2}), "status": {}}
    job = make_job(wire)
    membership = Membership(members=(0, 1), retired=frozenset(spent))
    wire["status"] = job_status(
        attrs.evolve(job.status, phase=JobPhase.RUNNING, membership=membership)
    )
    before = JobProgress("trainingjob", job.key)
    return job_progress(kind_of(GROUP, "TrainingJob"), job_object(wire), pods, before, NOW)


def job_status(status: JobStatus) -> dict[str, Any]:
    dialect = kind_of(GROUP, "TrainingJob").dialects["v1alpha1"]
    return dict(dialect.write_status(status))


@pytest.mark.parametrize(
    ("state", "phase"),
    [(exited(1), "Failed"), (exited(0), "Succeeded"), (RUNNING, "Stopped"), (None, "Stopped")],
)
def test_permanently_failed_worker_is_shown(state: dict[str, Any] | None, phase: str) -> None:
    job = make_job(elastic_job(worker={"replicas": 2}))
    pods = [make_pod(job, WORKER, state=state, restart_policy="Never")] if state else []
    seen = worker(elastic([0], *pods))
    assert seen.phase == phase
    assert seen.is_settled


def test_each_observed_end_of_a_replica_is_kept() -> None:
    state = look(make_pod(JOB, WORKER, state=RUNNING, metadata=with_uid("1")))
    state = look(
        make_pod(
            JOB,
            WORKER,
            state=RUNNING,
            last_state=exited(137),
            restart_count=1,
            metadata=with_uid("1"),
        ),
        before=state,
    )
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    state = look(
        make_pod(
            JOB,
            WORKER,
            state=waiting,
            last_state=exited(143),
            restart_count=1,
            metadata=with_uid("1"),
        ),
        before=state,
    )
    assert [end.exit_code for end in worker(state).exits] == [137, 143]
    state = look(make_pod(JOB, WORKER, state=RUNNING, metadata=with_uid("2")), before=state)
    assert [(end.run.pod_uid, end.run.number) for end in worker(state).exits] == [
        ("1", 0),
        ("1", 1),
    ]


def test_replica_whose_program_has_not_run_never_started() -> None:
    waiting = {"waiting": {"reason": "PodInitializing"}}
    state = look(make_pod(JOB, WORKER, state=waiting), make_pod(JOB, Replica("worker", 1)))
    running = look(make_pod(JOB, WORKER, state=RUNNING))
    assert "worker-0" in state.never_started
    assert "worker-0" not in running.never_started
