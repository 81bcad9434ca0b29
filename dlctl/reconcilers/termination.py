"""How a pod's run ended, and whether the program or the cluster caused it.

Pure. The cause matters more than the end itself: an eviction must not fail a job, and a bug must
not be retried forever.
"""

import datetime
import re
from typing import Final

import attrs

from dlctl.api.exit_codes import GENERAL_ERROR, ExitClass, describe_exit_code
from dlctl.api.objects.pods import ContainerStateTerminated, ContainerStatus, Pod, PodPhase
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.clock import EPOCH
from dlctl.errors import MAX_MESSAGE_CHARS, MAX_REASON_CHARS
from dlctl.reconcilers.program_output.log_text import printable
from dlctl.reconcilers.program_output.torchrun import recovered_exit_code

# Reasons set by the kubelet and the control plane for pods that they ended.
_DISRUPTION_REASONS: Final = frozenset(
    {
        "Evicted", "InvalidNodeInfo", "NodeAffinity", "NodeLost", "NodeName", "NodePorts",
        "NodeShutdown", "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch", "Preempting",
        "SMTAlignmentError", "Shutdown", "SupplementalGroupsPolicyNotSupported", "TaintToleration",
        "Terminated", "TopologyAffinityError", "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType", "UnknownReason",
    }
)  # fmt: skip
# The kubelet's messages for pods that exceeded a limit of their own, unlike those of a full node.
_OWN_LIMIT: Final = ("exceeds the total limit", "exceeds the limit", "exceeded its local ephemeral")
# The node lacks a resource: OutOfcpu, OutOfnvidia.com/gpu.
OUT_OF_PREFIX: Final = "OutOf"
# The kubelet sets this condition after the containers have terminated; others come before.
_TERMINATION_BY_KUBELET: Final = "TerminationByKubelet"
# Reasons for containers whose end was not observed because their node was down. The exit codes that
# come with them, 255 and 137, are fabricated.
UNOBSERVED_REASONS: Final = frozenset({"ContainerStatusUnknown", "Unknown"})
OOM_KILLED: Final = "OOMKilled"
# The kubelet reports the last container's end first, and the phase about a second later. Only the
# phase comes with the reason why the kubelet ended the pod: by the container alone, an eviction
# looks like the program's own failure. It gets four seconds, as a watch may lag, plus one because
# ``finishedAt`` has no fractions: the container may have ended up to a second later.
PHASE_WAIT_S: Final = 5.0
# Kubelets report at most 4,096 bytes.
_MAX_READ_CHARS: Final = 4096
_MAX_READ_LINES: Final = 20
_MAX_LINE_CHARS: Final = 512
_LETTER_OR_DIGIT: Final = re.compile(r"[^\W_]")


@attrs.frozen
class Termination:
    """The end of one run of a replica's program, or of its pod before the program could end."""

    exit_class: ExitClass
    reason: str
    message: str
    time: datetime.datetime
    started_at: datetime.datetime | None = None
    exit_code: int | None = None
    # Not caused by the program: it does not count as a failure.
    is_disruption: bool = False
    # The node's clock is ahead, so that ``time`` is only that of the observation.
    is_ahead: bool = False


def termination(
    pod: Pod, container: str, *, retry_policy: RetryPolicy, now: datetime.datetime
) -> Termination | None:
    """Return how the pod's run ended, or None while it continues or is about to restart.

    A run that the kubelet would repeat in the same pod has ended only if repeating it is useless.
    Anything after a request to delete the pod is a consequence of the deletion and not a
    termination. ``now`` replaces missing times.
    """
    status = pod.container_status(container)
    terminated = status.last_terminated if status else None
    if terminated and not _is_after_deletion(pod, terminated):
        found = _from_container(pod, terminated, retry_policy, now)
        if _is_over(pod, status) and _is_interrupted(pod, terminated):
            return _from_pod(pod, retry_policy, now, terminated)
        return None if _will_restart(pod, found.exit_class) else found
    if pod.metadata.is_terminating:
        return None
    if pod.phase is PodPhase.SUCCEEDED:
        return Termination(ExitClass.SUCCESS, "Completed", "the pod succeeded", now)
    before = _from_init_container(pod, retry_policy, now)
    if pod.phase is PodPhase.FAILED:
        return before or _from_pod(pod, retry_policy, now, None)
    # Otherwise the kubelet would restart the init container indefinitely.
    return before if before and before.exit_class is ExitClass.PERMANENT else None


def phase_wait_s(pod: Pod, container: str, now: datetime.datetime) -> float:
    """Return the seconds to wait for the phase of a failed pod; 0 if it is not needed.

    A success counts at once: its pod may be deleted the next moment. Bounded by ``PHASE_WAIT_S``,
    or twice that if the node's clock is ahead.
    """
    terminated = pod.terminated(container) or _failed_init_container(pod)
    if terminated is None or terminated.finished_at is None or not pod.is_terminal:
        return 0.0
    known = pod.phase.finished or pod.metadata.is_terminating or _is_disrupted(pod)
    if known or not terminated.exit_code or terminated.reason == OOM_KILLED:
        return 0.0
    left_s = PHASE_WAIT_S - (now - terminated.finished_at).total_seconds()
    return left_s if 0 < left_s <= 2 * PHASE_WAIT_S else 0.0


def _is_over(pod: Pod, status: ContainerStatus | None) -> bool:
    # A termination before an in-place restart is unrelated to the pod's current disruption.
    return pod.phase.finished or bool(status and status.state and status.state.terminated)


def _will_restart(pod: Pod, exit_class: ExitClass) -> bool:
    """Return whether the kubelet will restart the container and the restart should be awaited."""
    policy = pod.spec.restart_policy if pod.spec else None
    # Necessary in addition to the phase, which stays Running while another container runs.
    if pod.phase.finished or policy == "Never" or exit_class is ExitClass.PERMANENT:
        return False
    return exit_class is ExitClass.RETRYABLE or policy == "Always"


def _is_after_deletion(pod: Pod, terminated: ContainerStateTerminated) -> bool:
    deletion_requested = pod.metadata.deletion_requested_at
    if deletion_requested is None:
        return False
    if not pod.metadata.deletion_grace_period_seconds:
        # The node's final report about a stopped pod. Its deletion timestamp has replaced the
        # original one, so it is unknown which terminations came before the request.
        return True
    return terminated.finished_at is None or terminated.finished_at >= deletion_requested


def _from_container(
    pod: Pod,
    terminated: ContainerStateTerminated,
    retry_policy: RetryPolicy,
    now: datetime.datetime,
) -> Termination:
    code = recovered_exit_code(terminated.exit_code, terminated.message or "")
    reason = terminated.reason
    exit_class, meaning_text = retry_policy.exit_class(code), describe_exit_code(code)
    if reason == OOM_KILLED:
        meaning_text = "out of memory: the container's limit was reached"
        # A restart would reach the same limit again.
        exit_class = ExitClass.PERMANENT if retry_policy.uses_table else exit_class
    elif reason in UNOBSERVED_REASONS:
        exit_class, meaning_text = (
            _disruption_exit_class(retry_policy),
            "its end was not observed: its node was down or restarted",
        )
    return Termination(
        exit_class=exit_class,
        reason=printable(reason or ("Completed" if code == 0 else "Error"), MAX_REASON_CHARS),
        message=_message(code, meaning_text, _last_line(terminated.message or "")),
        time=_end(pod, terminated, now),
        started_at=_on_our_clock(terminated.started_at, pod, terminated, now),
        exit_code=code,
        is_disruption=reason in UNOBSERVED_REASONS,
        is_ahead=terminated.finished_at is not None and terminated.finished_at > now,
    )


def _from_init_container(
    pod: Pod, retry_policy: RetryPolicy, now: datetime.datetime
) -> Termination | None:
    """Return the end of a pod by an init container that failed, if one did."""
    failed = _failed_init_container(pod)
    if failed is None or _is_disrupted(pod):
        return None
    found = _from_container(pod, failed, retry_policy, now)
    if retry_policy.judges_init_containers:
        return found
    return attrs.evolve(found, exit_class=ExitClass.RETRYABLE)


def _message(code: int, meaning_text: str, last_line: str) -> str:
    if not last_line:
        return f"exit code {code} ({meaning_text})"
    # An exception says more than that there was an error.
    meaning = "" if meaning_text == GENERAL_ERROR else f" ({meaning_text})"
    return f"exit code {code}{meaning}: {last_line}"


def _last_line(message: str) -> str:
    """Return the last line of a termination message, which may be the end of a log."""
    text = message[-_MAX_READ_CHARS:].replace("\r", "\n").rstrip()
    lines = text.rsplit("\n", _MAX_READ_LINES)[-_MAX_READ_LINES:]
    # Rules of dashes and equals signs frame launchers' reports.
    last = next((line for line in reversed(lines) if _LETTER_OR_DIGIT.search(line)), "")
    return printable(last, _MAX_LINE_CHARS)


def _from_pod(
    pod: Pod,
    retry_policy: RetryPolicy,
    now: datetime.datetime,
    terminated: ContainerStateTerminated | None,
) -> Termination:
    status = pod.status
    condition = pod.condition("DisruptionTarget")
    reason = pod.status_reason or (condition.reason if condition else None)
    message = (status.message if status else None) or (condition.message if condition else None)
    return Termination(
        exit_class=_disruption_exit_class(retry_policy),
        reason=printable(reason or "PodFailed", MAX_REASON_CHARS),
        message=printable(message or "", MAX_MESSAGE_CHARS) or _default_message(terminated),
        time=_end(pod, terminated, now),
        started_at=status.start_time if status else None,
        # Limits in the pod's own spec are set by the user, not by the cluster.
        is_disruption=reason != "DeadlineExceeded" and not exceeded_own_limit(reason, message),
    )


def exceeded_own_limit(reason: str | None, message: str | None) -> bool:
    """Return whether the kubelet has evicted a pod because of a limit in its own spec."""
    return reason == "Evicted" and any(phrase in (message or "") for phrase in _OWN_LIMIT)


def _default_message(terminated: ContainerStateTerminated | None) -> str:
    if terminated is None:
        return "the pod failed, and its containers reported nothing"
    return f"the pod was interrupted, its container exited with code {terminated.exit_code}"


def _disruption_exit_class(retry_policy: RetryPolicy) -> ExitClass:
    # Never means never, even if the cluster caused the termination.
    return ExitClass.PERMANENT if retry_policy is RetryPolicy.NONE else ExitClass.RETRYABLE


def _end(
    pod: Pod, terminated: ContainerStateTerminated | None, now: datetime.datetime
) -> datetime.datetime:
    """Return when a run ended; without a report of its container, the last time in its pod.

    The restart back-off begins at this time, and a run that ends once must not seem to end again.
    """
    if terminated is not None and (
        end := _on_our_clock(terminated.finished_at, pod, terminated, now)
    ):
        return end
    status = pod.status
    times = [
        condition.last_transition_time
        for condition in (status.conditions if status else None) or ()
        # A pod that has ended is not ready; that it was scheduled, or is ready again, says nothing.
        if condition.type == "DisruptionTarget" or condition.status == "False"
    ]
    times += [status.start_time if status else None, pod.metadata.creation_timestamp]
    return max((time for time in times if time is not None and time <= now), default=now)


def _on_our_clock(
    time: datetime.datetime | None,
    pod: Pod,
    terminated: ContainerStateTerminated,
    now: datetime.datetime,
) -> datetime.datetime | None:
    """Return a time of a run if the node's clock were right, as far as the pod shows that.

    It is ahead if the time is in the future, and behind if the run precedes its pod. But of a
    container that could not start, kubelets report that it started in 1970.
    """
    if time is None:
        return None
    times = (terminated.started_at, terminated.finished_at)
    first = min((each for each in times if each not in (None, EPOCH)), default=time)
    created = pod.metadata.creation_timestamp or first
    lag = max(created - first, datetime.timedelta())
    return min(min(time, now) + lag, now)


def _is_disrupted(pod: Pod) -> bool:
    condition = pod.condition("DisruptionTarget")
    if condition is not None and condition.status == "True":
        return True
    reason = pod.status_reason
    return reason in _DISRUPTION_REASONS or reason.startswith(OUT_OF_PREFIX)


def _is_interrupted(pod: Pod, terminated: ContainerStateTerminated) -> bool:
    """Return whether the pod was ended, and its program with it.

    Programs that save a checkpoint on SIGTERM exit with 0 afterwards.
    """
    if terminated.exit_code:
        return _is_disrupted(pod)
    if pod.phase is PodPhase.FAILED and pod.status_reason:
        return True
    condition = pod.condition("DisruptionTarget")
    if condition is None or condition.status != "True":
        return pod.phase is PodPhase.FAILED and not _has_failed_container(pod)
    if condition.reason == _TERMINATION_BY_KUBELET:
        return True
    since, finished = condition.last_transition_time, terminated.finished_at
    return since is not None and finished is not None and finished >= since


def _has_failed_container(pod: Pod) -> bool:
    terminations = (status.last_terminated for status in pod.container_statuses)
    return any(end is not None and end.exit_code for end in terminations)


def _failed_init_container(pod: Pod) -> ContainerStateTerminated | None:
    terminations = (status.last_terminated for status in pod.regular_init_statuses)
    return next((end for end in terminations if end and end.exit_code), None)
