"""Why single replicas do not run: from their pods, restarts and the other replicas. Pure."""

import datetime
import enum
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.exit_codes import describe_exit_code
from dlctl.api.job import Job, Replica
from dlctl.api.meta import BATCH_JOBS, PODS, Resource
from dlctl.api.objects.pods import WORKERS_RUNNING_GATE, ContainerStatus, Pod
from dlctl.api.status import waiting_reasons as reasons
from dlctl.api.status.job_status import RestartRecord
from dlctl.clock import EPOCH
from dlctl.errors import truncated
from dlctl.name_lists import first_names
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.recreation_backoff import RecreationWait
from dlctl.reconcilers.restart_attempts import pods_of_earlier_attempts
from dlctl.reconcilers.waiting_texts import detail_of, utc

_STARTING: Final = frozenset({None, "ContainerCreating", "PodInitializing"})
# The kubelet alternates between the first two while it retries; their messages differ each time.
_PULL_ERRORS: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
_KUEUE_GATES: Final = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
_TEXT_BY_REASON: Final[Mapping[str, str]] = {
    reasons.CREATE_CONTAINER_CONFIG_ERROR: "container {name} cannot be configured",
    reasons.CREATE_CONTAINER_ERROR: "container {name} cannot be created",
    reasons.ERR_IMAGE_NEVER_PULL: "image {image} is not on node {node} and must not be pulled",
    reasons.INVALID_IMAGE_NAME: "{image} is not a valid image name",
    reasons.RUN_CONTAINER_ERROR: "container {name} cannot be run",
}


class Stage(enum.IntEnum):
    """How far a replica has come; of several, what holds up the others comes first."""

    SCHEDULING = enum.auto()
    PULLING = enum.auto()
    CONFIGURING = enum.auto()
    RESTARTING = enum.auto()
    TERMINATING = enum.auto()
    STARTING = enum.auto()
    WAITING_FOR_REPLICAS = enum.auto()


@attrs.frozen
class ReplicaWait:
    """The cause of a replica's wait; with ``since``, only a long wait is worth a message."""

    stage: Stage
    reason: str
    text: str
    since: datetime.datetime | None = None


def replica_waits(
    job: Job,
    observed: Observed,
    restart_times: Mapping[str, datetime.datetime],
    restarts: Mapping[str, RestartRecord],
) -> Iterator[tuple[Replica, ReplicaWait]]:
    """Yield the replicas that wait, with their causes; ``restart_times`` are those to come."""
    left = {
        pod.metadata.name: pod
        for pod in pods_of_earlier_attempts(job, observed.surplus_pods)
        if pod.metadata.is_terminating
    }
    for one in observed.replicas:
        earlier = left.get(job.child_name(one.replica)) if left else None
        found = _wait(job, observed, one, restart_times, restarts)
        if found := (_terminating(earlier) if earlier else found):
            yield one.replica, found


def _wait(
    job: Job,
    observed: Observed,
    one: ObservedReplica,
    restart_times: Mapping[str, datetime.datetime],
    restarts: Mapping[str, RestartRecord],
) -> ReplicaWait | None:
    match one.state:
        case ReplicaState.FAILED_RETRYABLE | ReplicaState.MISSING:
            name = str(one.replica)
            if name in restart_times:
                return _restart(restarts[name], restart_times[name])
            resource = PODS if job.has_own_pod(one.replica) else BATCH_JOBS
            child = resource, job.child_name(one.replica)
            if held := observed.children.recreation_waits.get(child):
                text = recreation_text(resource, held)
                return ReplicaWait(Stage.RESTARTING, reasons.POD_DELETED, text, held.since)
            return _missing(job, observed, one)
        case ReplicaState.TERMINATING if one.pod is not None:
            return _terminating(one.pod)
        case ReplicaState.PENDING:
            pod = one.pod or _launched(observed)
            if pod is not None and pod.is_gated:
                return _for_others(observed, one, pod.metadata.creation_timestamp)
            if pod is not None:
                return pod_wait(job, one.replica.type, pod)
            return _missing(job, observed, one)
        case _:
            return None


def _launched(observed: Observed) -> Pod | None:
    """Return the pod of a launcher that a batch/v1 Job owns."""
    active = observed.launcher.active_pods if observed.launcher else ()
    return active[-1] if active else None


def _restart(record: RestartRecord, time: datetime.datetime) -> ReplicaWait:
    text = (
        f"ended with {record.describe()} and restarts at {utc(time)}, "
        f"after {record.consecutive_ends} attempt{'' if record.consecutive_ends == 1 else 's'}"
    )
    return ReplicaWait(Stage.RESTARTING, reasons.RESTART_BACK_OFF, text)


def recreation_text(resource: Resource, wait: RecreationWait) -> str:
    """Return why the next child of a resource is not created yet."""
    kind = "pod" if resource == PODS else resource.kind
    children = f"{kind} was" if wait.deleted == 1 else f"{wait.deleted} {kind}s were"
    taints = "the taints of the node, " if resource == PODS else ""
    return (
        f"the last {children} deleted or changed by others soon after the creation: check {taints}"
        "other controllers and webhooks"
    )


def _missing(job: Job, observed: Observed, one: ObservedReplica) -> ReplicaWait | None:
    """Return why a replica has no pod yet if it waits for others; the rest are about to."""
    spec = job.replica_spec(one.replica.type)
    by_job = job.launcher_job is not None and job.launcher_job.waits_for_workers
    waits = (by_job and not job.has_own_pod(one.replica)) or (spec is not None and spec.create_last)
    return _for_others(observed, one, job.status.start_time) if waits else None


def _for_others(
    observed: Observed, one: ObservedReplica, since: datetime.datetime | None
) -> ReplicaWait:
    others = [o for o in observed.replicas if o.replica.type != one.replica.type]
    needs_ready = one.pod is None
    behind = [
        str(o.replica)
        for o in others
        if o.state not in (ReplicaState.RUNNING, ReplicaState.SUCCEEDED, ReplicaState.RETIRED)
        or (needs_ready and o.state is ReplicaState.RUNNING and not o.is_ready)
    ]
    state = "ready" if needs_ready else "running"
    missing = f"; not yet: {first_names(behind)}" if behind else ""
    what = f"other {len(others)} replicas are" if len(others) > 1 else "other replica is"
    text = f"starts once the {what} {state}{missing}"
    return ReplicaWait(
        Stage.WAITING_FOR_REPLICAS, reasons.WAITING_FOR_REPLICAS, text, since or EPOCH
    )


def _terminating(pod: Pod) -> ReplicaWait:
    since = pod.metadata.deletion_timestamp or EPOCH
    if pod.metadata.finalizers and pod.metadata.deletion_grace_period_seconds == 0:
        text = f"the previous pod is deleted but kept by the finalizer {pod.metadata.finalizers[0]}"
    elif pod.node_name:
        text = (
            f"the previous pod is still being deleted on node {pod.node_name}: "
            "if the node is lost, give it the taint node.kubernetes.io/out-of-service"
        )
    else:
        text = "the previous pod is still being deleted"
    return ReplicaWait(Stage.TERMINATING, reasons.POD_TERMINATING, text, since)


def pod_wait(job: Job, replica_type: str, pod: Pod) -> ReplicaWait | None:
    """Return why the containers of a pending pod do not run: the first obstacle on its way."""
    if (waits := _scheduling(pod)) is not None:
        return waits
    scheduled = pod.condition("PodScheduled")
    since = (
        (scheduled.last_transition_time if scheduled else None)
        or pod.metadata.creation_timestamp
        or EPOCH
    )
    for status in (*pod.init_container_statuses, *pod.container_statuses):
        if found := _container(job, replica_type, pod.node_name, status, since):
            return found
    for status in pod.regular_init_statuses:
        if status.state and status.state.running:
            text = f"init container {status.name} runs"
            started = status.state.running.started_at or since
            return ReplicaWait(Stage.STARTING, reasons.INIT_CONTAINER_RUNNING, text, started)
    if not pod.container_statuses:
        text = f"the kubelet of node {pod.node_name} has not reported on the pod"
        return ReplicaWait(Stage.STARTING, reasons.KUBELET_SILENT, text, since)
    text = (
        f"the containers are being created on node {pod.node_name}, which includes pulling images "
        "and mounting volumes"
    )
    return ReplicaWait(Stage.STARTING, reasons.CONTAINER_CREATING, text, since)


def _scheduling(pod: Pod) -> ReplicaWait | None:
    """Return why a pod has no node; None if it has one."""
    created = pod.metadata.creation_timestamp or EPOCH
    gates = [gate.name for gate in pod.scheduling_gates if gate.name != WORKERS_RUNNING_GATE]
    if any(name in _KUEUE_GATES for name in gates):
        return ReplicaWait(
            Stage.SCHEDULING, reasons.QUEUED_BY_KUEUE, "Kueue has not admitted the pod", created
        )
    if gates:
        text = f"the scheduling gate {gates[0]} holds the pod until its owner removes it"
        return ReplicaWait(Stage.SCHEDULING, reasons.SCHEDULING_GATED, text, created)
    condition = pod.condition("PodScheduled")
    if condition is not None and condition.status == "False":
        detail = detail_of(condition.message) or "the scheduler gives no reason"
        if condition.reason == "Unschedulable":
            is_volume = "persistentvolumeclaim" in detail.lower()
            reason = reasons.VOLUME_NOT_BOUND if is_volume else reasons.UNSCHEDULABLE
            return ReplicaWait(Stage.SCHEDULING, reason, f"no node fits: {detail}")
        text = f"the pod is not scheduled: {condition.reason or 'PodScheduled'}: {detail}"
        since = condition.last_transition_time or created
        return ReplicaWait(Stage.SCHEDULING, reasons.NOT_SCHEDULED, text, since)
    if not pod.node_name:
        text = "no scheduler has picked up the pod: check that the one in schedulerName is running"
        return ReplicaWait(Stage.SCHEDULING, reasons.NOT_SCHEDULED, text, created)
    return None


def _container(
    job: Job, replica_type: str, node: str, status: ContainerStatus, since: datetime.datetime
) -> ReplicaWait | None:
    """Return why a container does not start; None if it runs, has ended, or is being created."""
    waiting = status.state.waiting if status.state else None
    if waiting is None or waiting.reason in _STARTING:
        return None
    reason = waiting.reason or ""
    image = _image(job, replica_type, status.name)
    if reason in _PULL_ERRORS:
        text = (
            f"image {image} cannot be pulled: check its name and tag, the registry and "
            "imagePullSecrets"
        )
        return ReplicaWait(Stage.PULLING, reasons.IMAGE_PULL_FAILED, text)
    if reason == reasons.CRASH_LOOP_BACK_OFF:
        return ReplicaWait(Stage.RESTARTING, reason, _crash_text(status))
    detail = detail_of(waiting.message)
    if (form := _TEXT_BY_REASON.get(reason)) is not None:
        text = form.format(name=status.name, image=image, node=node)
        named = reason in (reasons.ERR_IMAGE_NEVER_PULL, reasons.INVALID_IMAGE_NAME) or not detail
        stage = Stage.PULLING if "Image" in reason else Stage.CONFIGURING
        return ReplicaWait(stage, reason, text if named else f"{text}: {detail}")
    text = f"container {status.name} waits: " + ": ".join(filter(None, (reason, detail)))
    return ReplicaWait(Stage.STARTING, reasons.CONTAINER_WAITING, text, since)


def _crash_text(status: ContainerStatus) -> str:
    last = status.last_state.terminated if status.last_state else None
    code = last.exit_code if last else None
    how = "an error" if code is None else f"exit code {code} ({describe_exit_code(code)})"
    return f"container {status.name} keeps exiting, the last time with {how}"


def _image(job: Job, replica_type: str, container: str) -> str:
    """Return the image of a container from its template; one that admission added has none."""
    spec = job.replica_spec(replica_type)
    pod_spec = spec.template["spec"] if spec else {}
    listed = [*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ())]
    found: Mapping[str, Any] = next((c for c in listed if c.get("name") == container), {})
    return truncated(str(found.get("image") or f"of container {container}"), 300)
