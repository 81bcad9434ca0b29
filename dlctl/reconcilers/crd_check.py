"""Whether the installed definition of a kind keeps what its statuses remember.

The definition of another operator drops ``status.dlctl`` in silence: only the answer to a write
shows it. Without memory no limit counts and no back-off grows, so jobs of the kind wait.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

import attrs

from dlctl.api.job import JobObject
from dlctl.api.meta import Resource
from dlctl.backoff import Backoff
from dlctl.clock import Clock
from dlctl.dialects import status_codec
from dlctl.errors import DlctlError
from dlctl.metrics import Metrics

logger = logging.getLogger(__name__)

# Where statuses keep what no other operator has a field for.
PRIVATE_STATUS_FIELD: Final = "dlctl"
# The cap is short enough that a mended definition is noticed soon; one job of the kind is tried
# each time.
BACKOFF: Final = Backoff(base_s=5.0, cap_s=60.0)
FIX_COMMAND: Final = "dlctl crds | kubectl apply --server-side --force-conflicts -f -"


class OutdatedCRDError(DlctlError):
    """The API server has dropped a part of the status that was just written."""


@attrs.define(eq=False)
class CRDCheck:
    """What the answers to status writes say about the definition of one kind."""

    resource: Resource
    metrics: Metrics
    clock: Clock
    _failures: int = attrs.field(init=False, default=0)
    _retry_at_s: float = attrs.field(init=False, default=float("-inf"))

    def __attrs_post_init__(self) -> None:
        self._set_gauge(0)

    def is_current(self) -> bool:
        """Return whether the last status that was written was kept whole, as far as is known."""
        return not self._failures

    def left_s(self) -> float:
        """Return the seconds before a job of the kind may be reconciled; 0 to do it now.

        While the definition is outdated, the caller that gets a 0 is the only one for a while.
        """
        if self.is_current():
            return 0.0
        left_s = self._retry_at_s - self.clock.monotonic()
        if left_s <= 0:
            self._postpone()
        return max(left_s, 0.0)

    def check(self, written: Mapping[str, Any], stored: JobObject) -> None:
        """Compare a status with what the server has made of it.

        :raises OutdatedDefinitionError: if what it remembers was dropped.
        """
        if PRIVATE_STATUS_FIELD not in written:
            return
        stored_status = status_codec.decode(stored.status)
        if PRIVATE_STATUS_FIELD in stored_status:
            self.reset()
            return
        message = (
            f"the CRD of {self.resource.group_resource} drops status.{PRIVATE_STATUS_FIELD}, so "
            "restarts and completed replicas would be forgotten; apply dlctl's CRDs: "
            f"{FIX_COMMAND}"
        )
        if not self._failures:
            logger.error(message)
        self._failures += 1
        self._set_gauge(1)
        self._postpone()
        raise OutdatedCRDError(message)

    def reset(self) -> None:
        """Take the definition for current: it was seen to be, or no job needs it."""
        if self._failures:
            logger.info("jobs go on", extra={"resource": self.resource.group_resource})
        self._failures = 0
        self._set_gauge(0)

    def _postpone(self) -> None:
        self._retry_at_s = self.clock.monotonic() + BACKOFF.delay_s(self._failures)

    def _set_gauge(self, value: int) -> None:
        self.metrics.dlctl_crd_outdated.labels(self.resource.group_resource).set(value)
