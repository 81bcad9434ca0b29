"""The condition Waiting: what holds up a job, in one stable sentence."""

import datetime
from typing import Any

import attrs
import msgspec
import pytest

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod, PodSchedulingGate
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase, JobStatus, RestartRecord
from dlctl.api.status.waiting import Waiting
from dlctl.errors import MAX_MESSAGE_CHARS
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits
from dlctl.reconcilers.lifecycle.replica_restarts import RESTART_BACKOFF, record_restarts
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.status import invalid_status, status_transitions
from dlctl.reconcilers.status.status_debounce import MAX_INTERVAL_S, debounce_counts
from dlctl.reconcilers.status.waiting_cause import PATIENCE_S, reported_wait, with_waiting
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, observed_of, training_job

LATER = NOW + datetime.timedelta(minutes=1)
SCHEDULER, WORKER, SECOND = Replica("scheduler", 0), Replica("worker", 0), Replica("worker", 1)
JOB = make_job()
LIMITS = RestartLimits(RESTART_BACKOFF)
QUOTA = Waiting("QuotaExceeded", "pod a is forbidden: exceeded quota")
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
}


def pending(
    replica: Replica = WORKER,
    reason: str = "",
    message: str = "",
    *,
    job: Job = JOB,
    scheduled: bool = True,
    created: datetime.datetime = NOW,
    **fields: Any,
) -> Pod:
    waits = {"waiting": {"reason": reason, "message": message}} if reason else None
    pod = make_pod(
        job,
        replica,
        phase="Pending",
        state=waits,
        metadata={"creationTimestamp": created.isoformat()},
        **fields,
    )
    assert pod.spec is not None
    node = "node-a" if scheduled else None
    placed: Pod = _replaced(pod, spec=_replaced(pod.spec, node_name=node))
    return placed


def _replaced(struct: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(struct, **fields)


def waiting(
    *pods: Pod, job: Job = JOB, now: datetime.datetime = LATER, **children: Any
) -> tuple[str, str]:
    found = reported_wait(job, observed_of(job, *pods, **children), now).waiting
    return (found.reason, found.message) if found else ("", "")


def after(job: Job, observed: Observed, now: datetime.datetime = NOW) -> Job:
    """Return the job with the status that follows."""
    restarts = record_restarts(job.status, observed, RESTART_BACKOFF)
    status, _ = status_transitions.running_status(job, observed, restarts, now)
    plan = with_waiting(job, Plan(status), observed, "", now, LIMITS)
    return attrs.evolve(job, status=plan.status)


def types(job: Job) -> list[str]:
    return [c.type for c in job.status.conditions if c.status]


@pytest.mark.parametrize(
    ("pod", "reason", "text"),
    [
        pytest.param(
            pending(scheduled=False, conditions=[UNSCHEDULABLE]),
            "Unschedulable",
            "no node fits: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu",
            id="unschedulable",
        ),
        pytest.param(
            pending(
                scheduled=False,
                conditions=[{**UNSCHEDULABLE, "message": 'persistentvolumeclaim "data" not found'}],
            ),
            "VolumeNotBound",
            'no node fits: persistentvolumeclaim "data" not found',
            id="volume",
        ),
        pytest.param(
            pending(scheduled=False),
            "NotScheduled",
            "no scheduler has picked up the pod: check that the one in schedulerName is running",
            id="no scheduler",
        ),
        pytest.param(
            pending(reason="ImagePullBackOff", message="attempt 3"),
            "ImagePullFailed",
            "image mxnet:1 cannot be pulled: check its name and tag, the registry and "
            "imagePullSecrets",
            id="image",
        ),
        pytest.param(
            pending(reason="ErrImagePull", message="rpc error"),
            "ImagePullFailed",
            "image mxnet:1 cannot be pulled: check its name and tag, the registry and "
            "imagePullSecrets",
            id="image, the other reason",
        ),
        pytest.param(
            pending(reason="InvalidImageName", message="couldn't parse"),
            "InvalidImageName",
            "mxnet:1 is not a valid image name",
            id="image name",
        ),
        pytest.param(
            pending(reason="ErrImageNeverPull"),
            "ErrImageNeverPull",
            "image mxnet:1 is not on node node-a and must not be pulled",
            id="never pulled",
        ),
        pytest.param(
            pending(reason="CreateContainerConfigError", message='secret "s" not found'),
            "CreateContainerConfigError",
            'container mxnet cannot be configured: secret "s" not found',
            id="missing secret",
        ),
        pytest.param(
            pending(reason="CrashLoopBackOff", message="back-off 40s", last_state=exited(143)),
            "CrashLoopBackOff",
            "container mxnet keeps exiting, the last time with exit code 143 (stopped (SIGTERM))",
            id="crash loop",
        ),
        pytest.param(
            pending(reason="ContainerCreating"),
            "ContainerCreating",
            "the containers are being created on node node-a, which includes pulling images and "
            "mounting volumes",
            id="creating",
        ),
        pytest.param(
            pending(
                initContainerStatuses=[
                    {"name": "fetch", "state": {"running": {"startedAt": NOW.isoformat()}}}
                ],
                reason="PodInitializing",
            ),
            "InitContainerRunning",
            "init container fetch runs",
            id="init container",
        ),
    ],
)
def test_pending_replica_waits_for_the_first_obstacle(pod: Pod, reason: str, text: str) -> None:
    assert waiting(pod) == (reason, f"worker-0 (1 of 4 replicas) waits: {text}")


@pytest.mark.parametrize("reason", ["", "ContainerCreating", "PodInitializing"])
def test_replica_that_starts_does_not_wait_until_it_takes_long(reason: str) -> None:
    observed = observed_of(JOB, pending(reason=reason))
    early = reported_wait(JOB, observed, NOW + datetime.timedelta(seconds=1))
    assert (early.waiting, early.requeue_after_s) == (None, PATIENCE_S - 1)
    late = reported_wait(JOB, observed, NOW + datetime.timedelta(seconds=PATIENCE_S))
    assert late.waiting is not None
    assert late.requeue_after_s is None


def test_waits_of_a_large_job_are_looked_at_together() -> None:
    job = make_job(training_job("JAXJob", Worker=3000))
    pods = (
        pending(
            replica, job=job, scheduled=False, created=NOW + datetime.timedelta(seconds=n // 100)
        )
        for n, replica in enumerate(job.replicas)
    )
    observed = observed_of(job, *pods)
    state = reported_wait(job, observed, NOW + datetime.timedelta(seconds=PATIENCE_S - 1))
    assert (state.waiting, state.requeue_after_s) == (None, 6)


def test_unschedulable_replica_waits_at_once() -> None:
    pod = pending(scheduled=False, conditions=[UNSCHEDULABLE])
    assert waiting(pod, now=NOW)[0] == "Unschedulable"


def test_replicas_of_one_reason_share_a_sentence() -> None:
    pods = [
        pending(Replica(type_, index), "ErrImagePull")
        for type_, index in (("scheduler", 0), ("server", 0), ("worker", 0), ("worker", 1))
    ]
    assert waiting(*pods)[1].startswith(
        "scheduler-0, server-0, worker-0 and 1 more (4 of 4 replicas) wait: image"
    )


def test_what_holds_up_others_comes_first() -> None:
    pods = [
        pending(SCHEDULER, "CreateContainerConfigError"),
        pending(WORKER, "ErrImagePull"),
        pending(SECOND, scheduled=False, conditions=[UNSCHEDULABLE]),
    ]
    assert waiting(*pods)[1].startswith("worker-1 (1 of 4 replicas) waits: no node fits")
    assert waiting(*pods, rejection_wait=QUOTA) == ("QuotaExceeded", QUOTA.message)
    invalid = attrs.evolve(JOB, invalid_reason="spec: is wrong")
    assert waiting(*pods, job=invalid, rejection_wait=QUOTA) == ("MXJobInvalid", "spec: is wrong")


def test_gated_replica_names_the_others_that_do_not_run() -> None:
    job = make_job(training_job("MPIJob", Launcher=1, Worker=2))
    gate = [{"name": "dlctl.dev/workers-running"}]
    gated = pending(Replica("launcher", 0), job=job, scheduled=False)
    gated = _replaced(gated, spec=_with_gates(gated, gate))
    runs = make_pod(job, WORKER, state=RUNNING)
    assert waiting(gated, runs, pending(SECOND, job=job), job=job, now=NOW) == ("", "")
    assert waiting(gated, runs, pending(SECOND, job=job, created=LATER), job=job) == (
        "WaitingForReplicas",
        (
            "launcher-0 (1 of 3 replicas) waits: starts once the other 2 replicas are running; "
            "not yet: worker-1"
        ),
    )


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ("kueue.x-k8s.io/admission", "QueuedByKueue"),
        ("example.com/gate", "SchedulingGated"),
    ],
)
def test_gate_of_another_controller(gate: str, reason: str) -> None:
    pod = pending(scheduled=False)
    assert waiting(_replaced(pod, spec=_with_gates(pod, [{"name": gate}])))[0] == reason


def _with_gates(pod: Pod, gates: list[dict[str, str]]) -> Any:
    return _replaced(pod.spec, scheduling_gates=msgspec.convert(gates, list[PodSchedulingGate]))


def test_failed_replica_waits_for_the_end_of_a_long_backoff() -> None:
    failed = make_pod(JOB, WORKER, phase="Failed", state=exited(137), restart_policy="Never")
    observed = observed_of(JOB, failed)
    job = after(JOB, observed)
    assert types(job) == ["Created", "Restarting"], "a short back-off is no wait"
    record = attrs.evolve(job.status.restarts["worker-0"], consecutive_ends=4)
    job = attrs.evolve(job, status=attrs.evolve(job.status, restarts={"worker-0": record}))
    reason, message = waiting(failed, job=job, now=NOW)
    assert reason == "RestartBackOff"
    assert message.startswith("worker-0 (1 of 4 replicas) waits: ended with exit code 137 (")
    assert message.endswith(" and restarts at 2026-01-01 12:01:20 UTC, after 4 attempts")


def test_whole_job_waits_for_the_end_of_a_long_backoff() -> None:
    failed = RestartRecord(4, 4, "gone", "Error", NOW, 1)
    status = attrs.evolve(JOB.status, phase=JobPhase.RESTARTING, restarts={"scheduler-0": failed})

    def planned(status: JobStatus, seconds: float) -> Plan:
        now = NOW + datetime.timedelta(seconds=seconds)
        return with_waiting(JOB, Plan(status), observed_of(JOB), "", now, LIMITS)

    waits = planned(status, 0).status
    assert [(c.reason, c.message) for c in waits.conditions] == [
        ("RestartBackOff", "the whole job failed and restarts at 2026-01-01 12:01:20 UTC")
    ]
    assert planned(waits, 79).status == waits, "it is not rewritten as time passes"
    assert not planned(waits, 80).status.conditions
    other = Condition.at(NOW, conditions.WAITING, QUOTA.reason, QUOTA.message)
    soon = {"scheduler-0": attrs.evolve(failed, consecutive_ends=1)}
    waited = attrs.evolve(status, restarts=soon, conditions=(other,))
    assert not planned(waited, 0).status.conditions, "a short back-off is no wait"


def test_pod_that_stays_on_a_lost_node() -> None:
    deleted = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 30}
    pod = make_pod(JOB, WORKER, state=RUNNING, metadata=deleted)
    pod = _replaced(pod, spec=_replaced(pod.spec, node_name="node-a"))
    assert waiting(pod, now=NOW) == ("", "")
    reason, message = waiting(pod)
    assert reason == "PodTerminating"
    assert "node-a: if the node is lost, give it the taint" in message


def test_next_attempt_waits_for_a_pod_that_stays_on_a_lost_node() -> None:
    manifest = training_job("PyTorchJob", Master=1, Worker=2)
    manifest["spec"]["runPolicy"] = {"failurePolicy": {"maxRestarts": 1}}
    job = make_job(manifest)
    status = attrs.evolve(job.status, phase=JobPhase.RESTARTING, job_restarts=1)
    job = attrs.evolve(job, status=status)
    deleted = {
        "deletionTimestamp": NOW.isoformat(),
        "deletionGracePeriodSeconds": 30,
        "labels": {"dlctl.dev/restart-attempt": "0"},
    }
    pod = make_pod(job, Replica("worker", 1), state=RUNNING, metadata=deleted, node_name="node-a")
    reason, message = waiting(pod, job=job)
    assert reason == "PodTerminating"
    assert message.startswith("worker-1 (1 of 3 replicas) waits: the previous pod is still being")


def test_suspended_job_waits_for_its_user() -> None:
    job = attrs.evolve(JOB, run_policy=attrs.evolve(JOB.run_policy, suspended=True))
    message = "the job is suspended: `dlctl resume mxjob/linear` starts it"
    assert waiting(job=job) == ("Suspended", message)


def test_running_replicas_do_not_wait() -> None:
    assert waiting(make_pod(JOB, WORKER, state=RUNNING)) == ("", "")


def test_condition_is_first_and_removed() -> None:
    observed = observed_of(JOB, rejection_wait=QUOTA)
    blocked = after(JOB, observed)
    assert types(blocked) == ["Waiting", "Created"]
    found = blocked.status.conditions[0]
    assert (found.reason, found.message) == ("QuotaExceeded", QUOTA.message)
    assert types(after(blocked, observed_of(JOB))) == ["Created"]


def test_message_is_bounded() -> None:
    long = {**UNSCHEDULABLE, "message": "x" * 50_000}
    _, message = waiting(pending(scheduled=False, conditions=[long]))
    assert len(message) <= MAX_MESSAGE_CHARS


def test_ended_job_does_not_wait() -> None:
    plan = Plan(attrs.evolve(JOB.status, phase=JobPhase.DONE))
    observed = observed_of(JOB, rejection_wait=QUOTA)
    assert with_waiting(JOB, plan, observed, "", NOW, LIMITS) == plan


def event_messages(before: Job, now: Job) -> list[str]:
    events = invalid_status.invalid_job_events(before, now.status, before.invalid_reason)
    return [note.message for note in events]


def test_running_job_with_an_invalid_spec_waits_with_one_event() -> None:
    job = make_job()
    observed = observed_of(job, make_pod(job, SCHEDULER, state=RUNNING))
    broken = attrs.evolve(after(job, observed), invalid_reason="spec: is wrong", generation=2)
    waits = after(broken, observed, LATER)
    assert waits.status.phase is JobPhase.RUNNING
    assert types(waits) == ["Waiting", "Created", "Running"]
    assert waits.status.conditions[0].reason == "MXJobInvalid"
    assert event_messages(broken, waits) == ["spec: is wrong"]

    again = after(attrs.evolve(waits, generation=3), observed, LATER)
    assert again.status.conditions == waits.status.conditions
    assert event_messages(waits, again) == []

    worse = attrs.evolve(waits, invalid_reason="spec: is worse")
    assert event_messages(worse, after(worse, observed, LATER)) == ["spec: is worse"]

    corrected = after(attrs.evolve(waits, invalid_reason=""), observed, LATER)
    assert types(corrected) == ["Created", "Running"]


def test_suspended_job_with_an_invalid_spec_says_so() -> None:
    job = attrs.evolve(make_job(), invalid_reason="spec: is wrong")

    def suspended(job: Job, now: datetime.datetime) -> tuple[Job, tuple[EventNote, ...]]:
        status, notes = status_transitions.suspended_status(job, Observed(()), now)
        plan = with_waiting(job, Plan(status), Observed(()), "", now, LIMITS)
        return attrs.evolve(job, status=plan.status), notes

    waits, _ = suspended(job, NOW)
    assert types(waits) == ["Waiting", "Created", "Suspended"]
    assert suspended(waits, LATER) == (waits, ())


def test_changed_message_is_written_at_a_limited_rate_and_a_new_reason_at_once() -> None:
    first = after(JOB, observed_of(JOB, rejection_wait=QUOTA))
    more = attrs.evolve(QUOTA, message="pod b is forbidden: exceeded quota")
    other = Waiting("WebhookFailed", "pod a is rejected")

    def written(rejected: Waiting | None, since_write_s: float) -> Plan:
        job = after(first, observed_of(JOB, rejection_wait=rejected), LATER)
        return debounce_counts(first, Plan(job.status), since_write_s)

    for changed in (more, None):
        held = written(changed, 1.0)
        assert (held.status, held.requeue_after_s) == (first.status, MAX_INTERVAL_S - 1.0)
        assert written(changed, MAX_INTERVAL_S).status != first.status
    assert conditions.find(written(other, 1.0).status.conditions, "Waiting") is not None
    assert written(other, 1.0).status != first.status
