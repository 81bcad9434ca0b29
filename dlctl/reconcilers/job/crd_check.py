"""Checks that the installed CRD of a kind preserves all fields of the status.

Another operator's CRD silently drops ``status.dlctl``, which only the response to a write shows.
Without these fields no limit counts and no back-off grows, so jobs of the kind wait.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

import attrs

from dlctl.api.meta import Resource
from dlctl.api.objects.jobs import JobObject
from dlctl.backoff import Backoff
from dlctl.clock import Clock
from dlctl.dialects.status import status_codec
from dlctl.dialects.status.status_codec import OWN_STATE_FIELD
from dlctl.errors import DlctlError
from dlctl.metrics import Metrics

logger = logging.getLogger(__name__)

# The cap is short enough to notice a fixed CRD soon; each time, one job of the kind is tried.
BACKOFF: Final = Backoff(base_s=5.0, cap_s=60.0)
FIX_COMMAND: Final = "dlctl crds | kubectl apply --server-side --force-conflicts -f -"


class StatusDroppedError(DlctlError):
    """The API server has dropped dlctl's part of a status: of one job's, or of all of its kind."""


def is_preserved(stored: JobObject) -> bool:
    """Return whether a job as stored has dlctl's part of the status."""
    # Most statuses without it need not be decoded.
    if OWN_STATE_FIELD.encode() not in bytes(stored.status):
        return False
    return OWN_STATE_FIELD in status_codec.decode(stored.status)


@attrs.define(eq=False)
class CRDCheck:
    """The state of one kind's CRD, according to the responses to status writes."""

    resource: Resource
    metrics: Metrics
    clock: Clock
    # True if the server has preserved the last written status.
    is_confirmed: bool = attrs.field(init=False, default=False)
    _failures: int = attrs.field(init=False, default=0)
    _retry_at_s: float = attrs.field(init=False, default=float("-inf"))

    def __attrs_post_init__(self) -> None:
        self._set_gauge(0)

    def is_current(self) -> bool:
        """Return whether the last written status was preserved, as far as is known."""
        return not self._failures

    def left_s(self) -> float:
        """Return the seconds before a job of the kind may be reconciled; 0 for now."""
        return 0.0 if self.is_current() else max(self._retry_at_s - self.clock.monotonic(), 0.0)

    def start_attempt(self) -> None:
        """Record that a job is reconciled; while the CRD is outdated, the others wait for it."""
        if not self.is_current():
            self._postpone()

    def check(self, written: Mapping[str, Any], stored: JobObject) -> None:
        """Compare a written status with the one that the server has stored.

        :raises StatusDroppedError: if dlctl's part of it was dropped.
        """
        if OWN_STATE_FIELD not in written:
            return
        if not is_preserved(stored):
            raise StatusDroppedError(f"the server drops status.{OWN_STATE_FIELD}")
        self.reset()
        self.is_confirmed = True

    def record_drop(self) -> str:
        """Hold back the jobs of the kind, and return the reason."""
        message = (
            f"the CRD of {self.resource.group_resource} drops status.{OWN_STATE_FIELD}, so "
            "restarts and completed replicas would be forgotten; apply dlctl's CRDs: "
            f"{FIX_COMMAND}"
        )
        if not self._failures:
            logger.error(message)
        self.is_confirmed = False
        self._failures += 1
        self._set_gauge(1)
        self._postpone()
        return message

    def reset(self) -> None:
        """Assume a current CRD: the server preserved a status, or no job needs it."""
        if self._failures:
            logger.info(
                "the CRD is up to date, resuming jobs",
                extra={"resource": self.resource.group_resource},
            )
        self._failures = 0
        # Without a job, the CRD may become another operator's.
        self.is_confirmed = False
        self._set_gauge(0)

    def _postpone(self) -> None:
        self._retry_at_s = self.clock.monotonic() + BACKOFF.delay_s(self._failures)

    def _set_gauge(self, value: int) -> None:
        self.metrics.dlctl_crd_outdated.labels(self.resource.group_resource).set(value)
