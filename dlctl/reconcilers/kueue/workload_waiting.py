"""Why Kueue does not admit a job, from its Workload. Pure."""

import itertools
from collections.abc import Iterator
from typing import Final

from dlctl.api.objects.workloads import Workload, WorkloadCondition
from dlctl.api.status import waiting_reasons as reasons
from dlctl.api.status.waiting import Waiting
from dlctl.errors import truncated
from dlctl.reconcilers.waiting_texts import detail_of, utc

# Reasons of Kueue that do not name a cause.
_VAGUE: Final = frozenset({"", "Pending", "Waiting"})
_MAX_PART_CHARS: Final = 400
# Positions up to here are shown as they are, and those behind in bands with these ends.
_EXACT_POSITIONS: Final = 10
_BAND_ENDS: Final = (_EXACT_POSITIONS, 20, 50, 100)


def shown_position(position: int) -> str:
    """Return a position in a queue, counted from 1, as a job's condition shows it.

    When a queue moves on, few jobs show another one: each of them writes its status.
    """
    if position <= _EXACT_POSITIONS:
        return str(position)
    for before, last in itertools.pairwise(_BAND_ENDS):
        if position <= last:
            return f"{before + 1} to {last}"
    return f"above {_BAND_ENDS[-1]}"


def workload_waiting(workload: Workload, position: str | None = None) -> Waiting | None:
    """Return what a Workload waits for; None once it is admitted or has finished.

    ``position`` is its place in the cluster queue as :func:`shown_position` returns it, if known.
    """
    if workload.spec is not None and workload.spec.active is False:
        return _waiting_for_activation(workload)
    if workload.is_true("Admitted") or workload.is_true("Finished"):
        return None
    evicted = workload.condition("Evicted")
    eviction = ""
    if evicted is not None and evicted.status == "True":
        eviction = f"Kueue has evicted the job ({_describe(evicted)}), and "
    if workload.is_true("QuotaReserved"):
        checks = "; ".join(_pending_checks(workload)) or "the admission checks of its queue"
        return _waiting(reasons.ADMISSION_CHECK_PENDING, f"{eviction}Kueue waits for {checks}")
    return _waiting_for_quota(workload, eviction, position)


def _waiting_for_activation(workload: Workload) -> Waiting:
    cause = workload.condition("Evicted") or workload.condition("DeactivationTarget")
    description = _describe(cause) if cause else ""
    why = f" ({description})" if description else ""
    name = workload.metadata.name
    text = f"Kueue has deactivated Workload {name}{why}: set its spec.active to true"
    return _waiting(reasons.WORKLOAD_DEACTIVATED, text)


def _waiting_for_quota(workload: Workload, eviction: str, position: str | None) -> Waiting:
    """Return the wait for quota; ``eviction`` begins the sentence if the job was evicted."""
    quota = workload.condition("QuotaReserved")
    reason = (quota.reason if quota else None) or ""
    message = detail_of(quota.message, _MAX_PART_CHARS) if quota else ""
    queue = (workload.spec.queue_name if workload.spec else None) or "none"
    job = "it" if eviction else "the job"
    place = f" (position {position} of the cluster queue)" if position else ""
    text = f"{eviction}Kueue has not admitted {job} from queue {queue}{place}"
    retry = workload.status.requeue_state if workload.status else None
    when = f"; it is queued again at {utc(retry.requeue_at)}" if retry and retry.requeue_at else ""
    cause_of = f": {message}" if message else ""
    named = reasons.WAITING_FOR_QUOTA if reason in _VAGUE else reason
    return _waiting(named, f"{text}{cause_of}{when}")


def _pending_checks(workload: Workload) -> Iterator[str]:
    for check in (workload.status.admission_checks if workload.status else None) or ():
        if check.state != "Ready":
            message = f": {detail_of(check.message, _MAX_PART_CHARS)}" if check.message else ""
            yield f"the admission check {check.name} ({check.state}{message})"


def _describe(condition: WorkloadCondition) -> str:
    return ": ".join(
        filter(None, (condition.reason, detail_of(condition.message, _MAX_PART_CHARS)))
    )


def _waiting(reason: str, text: str) -> Waiting:
    sentence = text[:1].upper() + text[1:]
    return Waiting(truncated(reason, _MAX_PART_CHARS), truncated(sentence))
