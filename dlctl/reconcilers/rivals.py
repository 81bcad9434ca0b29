"""Another writer of a job's status: a second operator that runs beside this one.

Each would undo what the other writes. One foreign write is no rival: an operator that is being
replaced may leave a last one.
"""

from typing import Final

import attrs
import msgspec

from dlctl.api.status import JobStatus
from dlctl.dialects import status_parts

BASE_S: Final = 5.0
CAP_S: Final = 300.0
# Foreign writes that are further apart have nothing to do with each other.
RESET_S: Final = 900.0
# The text stays the same, so that its events are counted up.
REASON: Final = "AnotherOperator"
MESSAGE: Final = (
    "another controller keeps overwriting the status of this job, and so its record of restarts: "
    "run only one operator and stop the other, for example with "
    "kubectl scale deployment training-operator --replicas 0"
)


@attrs.define
class StatusRival:
    """What is remembered of the statuses of one job: of no consequence if lost."""

    # Of the status as it was last written by us, or seen: its bytes, and what they mean.
    _bytes: int | None = None
    _meaning: int | None = None
    _writes: int = 0
    _last_s: float = float("-inf")
    _due_s: float = float("-inf")

    def wrote(self, status: msgspec.Raw) -> None:
        """Remember the status as the server has answered our own write."""
        self._bytes, self._meaning = hash(bytes(status)), _meaning(status)

    def look(self, status: msgspec.Raw, now_s: float) -> bool:
        """Return whether a rival has just changed the status, not for the first time.

        If so, the pause that :meth:`left_s` returns has begun.
        """
        if self._bytes is None or hash(bytes(status)) == self._bytes:
            return False
        known = self._meaning
        self.wrote(status)
        if self._meaning == known:
            return False
        self._writes = self._writes + 1 if now_s - self._last_s <= RESET_S else 1
        self._last_s = now_s
        if self._writes == 1:
            return False
        self._due_s = now_s + min(BASE_S * 2.0 ** min(self._writes - 2, 10), CAP_S)
        return True

    def left_s(self, now_s: float) -> float:
        """Return the seconds before the job may be reconciled."""
        return max(self._due_s - now_s, 0.0)


def recalled(status: JobStatus, own: JobStatus) -> JobStatus:
    """Return a status that a rival has left with what ours remembered of the same run."""
    if status.start_time != own.start_time:
        return status
    replicas = tuple(
        attrs.evolve(r, completed=r.completed | own.completed(r.type))
        for r in status.replica_statuses
    )
    return attrs.evolve(status, restarts=own.restarts, replica_statuses=replicas)


def _meaning(status: msgspec.Raw) -> int:
    return hash(msgspec.json.encode(status_parts.stored(status), order="deterministic"))
