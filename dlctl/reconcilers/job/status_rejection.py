"""The API server's rejection of a job's status, kept in memory; losing it changes no decision."""

from typing import Final

import attrs

from dlctl.backoff import Backoff
from dlctl.errors import DlctlError
from dlctl.reconcilers.children.rejection import without_numbers

# The reason of the event about it.
STATUS_REJECTED: Final = "StatusRejected"
# Without a back-off, each event of the job's pods would write the same status again.
BACKOFF: Final = Backoff(base_s=1.0, cap_s=300.0)
# Messages about a role that is too narrow, and about a webhook that does not answer: both concern
# all jobs, and an event on each job would be too many.
_NOT_ABOUT_THE_JOB: Final = ("cannot patch resource", "failed calling webhook")


class StatusRejectedError(DlctlError):
    """The API server does not accept a job's new status, and why, such as by its CRD's rules."""


@attrs.define
class StatusRejection:
    """How often in a row the status of a job was rejected, and when it is tried again."""

    _failures: int = 0
    _retry_at_s: float = float("-inf")
    _generation: int = 0
    _reported: str = ""

    def left_s(self, generation: int, now_s: float) -> float:
        """Return the seconds until the next attempt; 0 for now, as after a change of the spec."""
        return max(self._retry_at_s - now_s, 0.0) if generation == self._generation else 0.0

    def add(self, message: str, generation: int, now_s: float) -> bool:
        """Record a rejection; return whether to report it to the job's user.

        The first one may be temporary, as while a CRD is replaced.
        """
        self._failures += 1
        self._generation = generation
        self._retry_at_s = now_s + BACKOFF.delay_s(self._failures)
        cause = without_numbers(message)
        if self._failures == 1 or cause == self._reported:
            return False
        if any(words in message for words in _NOT_ABOUT_THE_JOB):
            return False
        self._reported = cause
        return True

    def clear(self) -> None:
        """Record that a status was accepted."""
        self._failures, self._retry_at_s, self._reported = 0, float("-inf"), ""
