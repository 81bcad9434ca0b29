"""Evidence of why one replica of an attempt ended, and how it compares with that of others."""

import enum

import attrs

from dlctl.api.status.verdict import Cause, Confidence
from dlctl.reconcilers.program_output.log_classes import Weight


class Proof(enum.IntEnum):
    """Where evidence comes from, the strongest first."""

    NODE = enum.auto()
    POD = enum.auto()
    SUMMARY = enum.auto()
    LOG = enum.auto()
    EXIT_CODE = enum.auto()
    NONE = enum.auto()


@attrs.frozen
class Evidence:
    """The evidence of one source about the end of one replica."""

    cause: Cause
    proof: Proof
    message: str
    confidence: Confidence = Confidence.HIGH
    weight: Weight = Weight.CAUSE
    # The exit code of the process; None to take the container's.
    exit_code: int | None = None
    rank: int | None = None
    # The host of the process, as its launcher names it; empty to blame the replica itself.
    host: str = ""
    # The node was taken down on purpose, which is no fault of it.
    is_planned: bool = False

    @property
    def order(self) -> tuple[Weight, Proof]:
        """Return a sort key: the evidence that proves most is the smallest."""
        return self.weight, self.proof
