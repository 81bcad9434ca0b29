"""Detects another writer of a job's status: a second operator running beside this one.

Each would undo the other's writes. A single foreign write is no conflict: an operator that is being
replaced may still make a last one.
"""

from typing import Final

import attrs
import msgspec

from dlctl.api.status.job_status import JobStatus
from dlctl.backoff import Backoff
from dlctl.dialects.status import status_codec

# Foreign writes that are further apart are unrelated.
BACKOFF: Final = Backoff(base_s=5.0, cap_s=300.0, reset_s=900.0)
# A constant text, so that repeated events are aggregated.
REASON: Final = "StatusConflict"
MESSAGE: Final = (
    "another controller keeps overwriting the status of this job, and so its record of restarts: "
    "run only one operator and stop the other, for example with "
    "kubectl scale deployment training-operator --replicas 0"
)


@attrs.define
class StatusConflictDetector:
    """The recent writes of one job's status, kept in memory; losing them changes no decision."""

    # Hashes of the last status written or seen: of its bytes, and of its decoded content.
    _raw_hash: int | None = None
    _semantic_hash: int | None = None
    _foreign_writes: int = 0
    _last_conflict_s: float = float("-inf")
    _retry_at_s: float = float("-inf")

    def record_own_write(self, status: msgspec.Raw) -> None:
        """Remember the status in the server's response to dlctl's own write."""
        self._raw_hash, self._semantic_hash = hash(bytes(status)), _semantic_hash(status)

    def record_unconfirmed_write(self) -> None:
        """Forget the status: dlctl's own write may have changed it, without a usable response."""
        self._raw_hash = self._semantic_hash = None

    def detect(self, status: msgspec.Raw, now_s: float) -> bool:
        """Return whether another writer has just changed the status, not for the first time.

        If so, the pause that :meth:`left_s` returns begins.
        """
        if self._raw_hash is None or hash(bytes(status)) == self._raw_hash:
            return False
        known = self._semantic_hash
        self.record_own_write(status)
        if self._semantic_hash == known:
            return False
        self._foreign_writes = (
            self._foreign_writes + 1 if now_s - self._last_conflict_s <= BACKOFF.reset_s else 1
        )
        self._last_conflict_s = now_s
        if self._foreign_writes == 1:
            return False
        self._retry_at_s = now_s + BACKOFF.delay_s(self._foreign_writes - 1)
        return True

    def left_s(self, now_s: float) -> float:
        """Return the seconds before the job may be reconciled."""
        return max(self._retry_at_s - now_s, 0.0)


def restore_own_status(status: JobStatus, own: JobStatus) -> JobStatus:
    """Return another writer's status with what dlctl recorded: restarts, attempts, completions."""
    if status.start_time != own.start_time:
        return status
    replicas = tuple(
        attrs.evolve(r, completed_indexes=r.completed_indexes | own.completed_indexes(r.type))
        for r in status.replica_statuses
    )
    return attrs.evolve(
        status,
        restarts=own.restarts,
        attempts=own.attempts,
        scaled_down=own.scaled_down,
        replica_statuses=replicas,
    )


def _semantic_hash(status: msgspec.Raw) -> int:
    return hash(msgspec.json.encode(status_codec.decode(status), order="deterministic"))
