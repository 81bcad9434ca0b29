import datetime
import tracemalloc
from collections.abc import Sequence
from typing import Any

import attrs
import msgspec
import pytest

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICES, Resource
from dlctl.api.objects.pods import WORKERS_RUNNING_GATE, Pod, PodSchedulingGate, PodSpec, Service
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.reconcilers.children.rejection import Rejection, RejectionCause
from dlctl.reconcilers.events.pod_events import (
    EventDedup,
    PodProblems,
    batch_messages,
    new_pod_problems,
)
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, renderer_of, training_job

ONE, TWO = Replica("worker", 0), Replica("worker", 1)
CAUSE = "UserCode, worker-1, low confidence: exit code 1: general error"


def tf_job(policy: str = "", **counts: int) -> tuple[Job, JSON]:
    manifest = training_job("TFJob", **(counts or {"Worker": 2}))
    for spec in manifest["spec"]["tfReplicaSpecs"].values():
        spec["restartPolicy"] = policy or "Never"
    return make_job(manifest), manifest


def planned(job: Job, manifest: JSON, *pods: Pod) -> Plan:
    services = [
        msgspec.json.decode(msgspec.json.encode(renderer_of(manifest).service(r)), type=Service)
        for r in job.replicas
    ]
    observed = observe(job, Children(pods, services), NOW)
    renderer = attrs.evolve(renderer_of(manifest), job=job)
    return plan_job(job, observed, renderer.desired(observed), NOW, PlanSettings())


def pod_of(job: Job, replica: Replica, code: int | None = None, **more: Any) -> Pod:
    phase = "Running" if code is None else "Failed" if code else "Succeeded"
    state = RUNNING if code is None else exited(code)
    return make_pod(job, replica, phase=phase, state=state, **more)


def event_messages(made: Plan) -> list[tuple[str, str, str]]:
    return [(note.type, note.reason, note.message) for note in made.notes]


def test_exit_is_reported_once_and_not_if_the_status_has_it() -> None:
    job, manifest = tf_job()
    pods = [pod_of(job, ONE), pod_of(job, TWO, 0)]
    first = planned(job, manifest, *pods)
    expected = ("Normal", "ExitedWithCode", "Pod: ml.linear-worker-1 exited with code 0")
    assert event_messages(first) == [expected]
    later = attrs.evolve(job, status=first.status)
    assert not planned(later, manifest, *pods).notes


@pytest.mark.parametrize("kind", ["TFJob", "MPIJob"])
def test_exit_of_an_init_container_or_in_an_mpi_job_is_not_reported(kind: str) -> None:
    manifest = training_job(kind, **({"Launcher": 1} if kind == "MPIJob" else {}), Worker=2)
    job = make_job(manifest)
    init = [{"name": "fetch", "state": exited(5)}]
    ended = (
        pod_of(job, TWO, 1)
        if kind == "MPIJob"
        else make_pod(job, TWO, phase="Failed", state={"waiting": {}}, initContainerStatuses=init)
    )
    made = planned(job, manifest, pod_of(job, ONE), ended)
    assert [reason for _, reason, _ in event_messages(made)] == [f"{kind}Failed"]


def test_failure_is_reported_with_training_operators_exit_message() -> None:
    job, manifest = tf_job()
    made = planned(job, manifest, pod_of(job, ONE), pod_of(job, TWO, 1))
    failed = "TFJob ml/linear has failed because 1 Worker replica(s) failed."
    assert event_messages(made) == [
        ("Normal", "ExitedWithCode", "Pod: ml.linear-worker-1 exited with code 1"),
        ("Normal", "TFJobFailed", f"{failed} First cause: {CAUSE}"),
    ]


def test_permanent_exit_code_is_a_warning() -> None:
    job, manifest = tf_job("ExitCode")
    made = planned(job, manifest, pod_of(job, ONE), pod_of(job, TWO, 1))
    message = 'job "linear" is failing because "Worker" replica(s) failed.'
    expected = ("Warning", "TFJobFailed", f"{message} First cause: {CAUSE}")
    assert event_messages(made)[-1] == expected


def test_restart_is_reported_with_the_preceding_exit() -> None:
    job, manifest = tf_job("ExitCode")
    pods = [pod_of(job, ONE), pod_of(job, TWO, 143)]
    made = planned(job, manifest, *pods)
    assert [reason for _, reason, _ in event_messages(made)] == [
        "ExitedWithCode",
        "TFJobRestarting",
    ]
    assert made.notes[-1].message == "job linear is restarting because Worker replica(s) failed."
    assert not planned(attrs.evolve(job, status=made.status), manifest, *pods).notes


def test_exit_is_not_reported_again_when_the_job_is_suspended() -> None:
    job, manifest = tf_job("ExitCode")
    pods = [pod_of(job, ONE), pod_of(job, TWO, 143)]
    known = attrs.evolve(job, status=planned(job, manifest, *pods).status)
    policy = attrs.evolve(known.run_policy, suspended=True)
    made = planned(attrs.evolve(known, run_policy=policy), manifest, *pods)
    assert "ExitedWithCode" not in [reason for _, reason, _ in event_messages(made)]


def test_exit_after_the_end_of_the_job_is_not_reported() -> None:
    job, manifest = tf_job(Chief=1, Worker=2)
    status = JobStatus(JobPhase.DONE, completion_time=NOW, observed_generation=job.generation)
    job = attrs.evolve(job, status=status)
    assert not planned(job, manifest, pod_of(job, ONE, 0)).notes


def test_exits_of_tolerated_workers_are_reported_once_each() -> None:
    job, manifest = tf_job(PS=1, Worker=4)
    manifest["spec"]["enableDynamicWorker"] = True
    job = make_job(manifest)
    ended: list[Replica] = []
    expected = [Replica("worker", index) for index in (3, 1, 2)]
    for second, replica in enumerate(expected):
        ended.append(replica)
        pods = [
            make_pod(
                job,
                r,
                phase="Failed" if r in ended else "Running",
                state=exited(1, at=NOW + datetime.timedelta(seconds=ended.index(r) - 9))
                if r in ended
                else RUNNING,
            )
            for r in job.replicas
        ]
        made = planned(job, manifest, *pods)
        exits = [
            message for _, reason, message in event_messages(made) if reason == "ExitedWithCode"
        ]
        assert exits == [f"Pod: ml.linear-{replica} exited with code 1"], second
        job = attrs.evolve(job, status=made.status)
        assert not planned(job, manifest, *pods).notes


def test_exit_before_a_suspension_is_not_reported_after_it() -> None:
    job, manifest = tf_job()
    later = NOW + datetime.timedelta(seconds=5)
    started = attrs.evolve(job.status, phase=JobPhase.CREATING, start_time=later)
    deadline = NOW + datetime.timedelta(seconds=30)
    leaving = {"deletionTimestamp": deadline.isoformat(), "deletionGracePeriodSeconds": 30}
    old = make_pod(job, TWO, state=exited(0, at=NOW - deadline.resolution), metadata=leaving)
    made = planned(attrs.evolve(job, status=started), manifest, pod_of(job, ONE), old)
    assert not made.notes
    assert not made.status.completed_indexes("worker")


def test_many_exits_become_one_event() -> None:
    job, manifest = tf_job(Chief=1, Worker=40)
    workers = [pod_of(job, Replica("worker", index), 0) for index in range(40)]
    made = planned(job, manifest, pod_of(job, Replica("chief", 0)), *workers)
    messages = [message for _, _, message in event_messages(made)]
    assert messages == ["40 pods exited with code 0: linear-worker-0 and 39 more"]


def test_other_kinds_emit_no_pod_events() -> None:
    job = make_job()
    assert not job.messages.emits_pod_events
    assert job.messages.event_source == "dlctl"


def waiting(job: Job, replica: Replica, reason: str, message: str = "said") -> Pod:
    state = {"waiting": {"reason": reason, "message": message}}
    return make_pod(job, replica, phase="Pending", state=state)


def new_problems(pods: Sequence[Pod]) -> Sequence[EventNote]:
    notes, _ = new_pod_problems(pods, PodProblems())
    return notes


def reported(*observed: Sequence[Pod]) -> list[list[str]]:
    """Return the reported reasons of each observation of the pods."""
    seen, reasons = PodProblems(), []
    for pods in observed:
        notes, seen = new_pod_problems(pods, seen)
        reasons.append([note.reason for note in notes])
    return reasons


def test_each_waiting_reason_of_a_pod_is_reported_once() -> None:
    job, _ = tf_job()
    pull, wait = ([waiting(job, ONE, r)] for r in ("ErrImagePull", "ImagePullBackOff"))
    # Both reasons alternate.
    assert reported(pull, wait, pull, wait) == [["ErrImagePull"], ["ImagePullBackOff"], [], []]
    (note,) = new_problems(pull)
    message = "Error pod linear-worker-0 container tensorflow waiting message: said"
    assert note == EventNote("Warning", "ErrImagePull", message)


def test_waiting_reason_of_a_new_pod_is_reported_again() -> None:
    job, _ = tf_job()
    pull = [waiting(job, ONE, "ErrImagePull")]
    assert reported(pull, [], pull) == [["ErrImagePull"], [], ["ErrImagePull"]]


def test_reasons_without_end_cost_few_events_and_little_memory() -> None:
    job, _ = tf_job()
    many = [
        {"name": f"c{number}", "state": {"waiting": {"reason": f"R{number}", "message": "said"}}}
        for number in range(800)
    ]
    pod = make_pod(job, ONE, phase="Pending", containerStatuses=many)
    notes, seen = new_pod_problems([pod], PodProblems())
    assert len(notes) <= 32
    tracemalloc.start()
    try:
        for number in range(200):
            pods = [waiting(job, ONE, f"{number}-" + "x" * 100_000)]
            (note,), seen = new_pod_problems(pods, seen)
            assert len(note.reason) <= 128
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < 500_000


def test_starting_pod_has_no_waiting_reason() -> None:
    job, _ = tf_job()
    assert reported([waiting(job, ONE, "ContainerCreating", ""), pod_of(job, TWO)]) == [[]]


def test_crashed_container_is_reported_with_its_code() -> None:
    job, _ = tf_job()
    crashed = exited(137, reason="OOMKilled")
    pod = make_pod(job, ONE, phase="Running", state=crashed)
    (note,) = new_problems([pod])
    assert note.reason == "OOMKilled"
    assert "container tensorflow exitCode: 137 terminated message: " in note.message


@pytest.mark.parametrize("last", ["False", "True"])
def test_last_changed_condition_explains_a_pod_without_containers(last: str) -> None:
    job, _ = tf_job()
    conditions = [
        condition("Initialized", "True", NOW - datetime.timedelta(seconds=5)),
        condition("PodScheduled", last, NOW),
    ]
    pod = make_pod(job, ONE, phase="Pending", conditions=conditions, containerStatuses=[])
    messages = [note.message for note in new_problems([pod])]
    expected = ["Error pod linear-worker-0 condition message: no node fits"]
    assert messages == (expected if last == "False" else [])


def condition(type_: str, status: str, since: datetime.datetime) -> JSON:
    return {
        "type": type_,
        "status": status,
        "reason": "Unschedulable",
        "message": "no node fits",
        "lastTransitionTime": since.isoformat(),
    }


def test_same_waiting_reason_of_many_pods_becomes_one_event() -> None:
    job, _ = tf_job(Worker=40)
    pods = [waiting(job, Replica("worker", index), "ErrImagePull") for index in range(40)]
    (note,) = new_problems(pods)
    assert note.message.endswith("waiting message: said (and 39 more like this)")


def rejection(
    error: str, resource: Resource = PODS, cause: RejectionCause = RejectionCause.FORBIDDEN
) -> dict[str, Rejection]:
    return {"linear-worker-0": Rejection(cause, resource, f"it waits: {error}", error)}


def test_rejection_is_reported_once_until_it_changes() -> None:
    job, _ = tf_job()
    memory, quota = EventDedup(), rejection("exceeded quota: q")
    (note,) = memory.rejections(job, quota)
    assert note == EventNote("Warning", "FailedCreatePod", "Error creating: exceeded quota: q")
    assert not memory.rejections(job, quota)
    (other,) = memory.rejections(job, rejection("no", SERVICES))
    assert other.reason == "FailedCreateService"
    assert not memory.rejections(job, {})
    assert memory.rejections(job, quota)


def test_rejection_with_another_request_id_is_not_reported_again() -> None:
    job, _ = tf_job()
    memory = EventDedup()
    assert memory.rejections(job, rejection("webhook denied request 7f3a91"))
    assert not memory.rejections(job, rejection("webhook denied request 0c22d8"))


@pytest.mark.parametrize("cause", list(RejectionCause))
def test_list_form_gets_events_only_about_actionable_rejections(cause: RejectionCause) -> None:
    found = EventDedup().rejections(make_job(), rejection("no", cause=cause))
    usual = cause in (RejectionCause.FORBIDDEN, RejectionCause.ALREADY_EXISTS)
    assert [note.reason for note in found] == ([] if usual else ["FailedCreatePod"])


def test_children_of_one_operation_share_an_event_that_names_the_first() -> None:
    assert batch_messages("Deleted", "Pod", []) == []
    assert batch_messages("Deleted", "Pod", ["a"]) == ["Deleted pod: a"]
    assert batch_messages("Deleted", "Pod", ["b", "a"]) == ["Deleted pods: a, b"]
    names = [f"w-{n:02}" for n in range(10)]
    assert batch_messages("Created", "Pod", names) == [
        "Created 10 pods: w-00, w-01, w-02, w-03, w-04, w-05, w-06, w-07 and 2 more"
    ]
    (message,) = batch_messages("Created", "Pod", names[:9])
    assert message.endswith("w-07 and 1 more")


def test_children_get_events_of_their_own_if_asked_for_and_few() -> None:
    few = batch_messages("Deleted", "Pod", ["b", "a"], per_child=True)
    assert few == ["Deleted pod: a", "Deleted pod: b"]
    assert len(batch_messages("Created", "Pod", [str(n) for n in range(7)], per_child=True)) == 1


def test_gated_pod_has_no_waiting_reason() -> None:
    job, _ = tf_job()
    gated = condition("PodScheduled", "False", NOW)
    pod = make_pod(job, ONE, phase="Pending", conditions=[gated], containerStatuses=[])
    assert new_problems([pod])
    gates = (PodSchedulingGate(name=WORKERS_RUNNING_GATE),)
    assert not new_problems([msgspec.structs.replace(pod, spec=PodSpec(scheduling_gates=gates))])


def test_pod_that_was_just_ungated_has_no_waiting_reason() -> None:
    job, _ = tf_job()
    gated = {**condition("PodScheduled", "False", NOW), "reason": "SchedulingGated"}
    pod = make_pod(job, ONE, phase="Pending", conditions=[gated], containerStatuses=[])
    assert not new_problems([pod])
    spec = PodSpec(scheduling_gates=(PodSchedulingGate(name="example.com/quota"),))
    assert new_problems([msgspec.structs.replace(pod, spec=spec)])
