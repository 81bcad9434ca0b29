"""Why an attempt of a job ended: its first cause, the replica to blame, and the collateral."""

import datetime
import enum
import re
from collections.abc import Mapping, Sequence
from typing import Final, Self

import attrs

from dlctl.name_lists import first_names

# A status lists at most this number of attempts, the newest ones.
MAX_ATTEMPTS: Final = 20
# A verdict names at most this number of replicas that fell as a consequence.
MAX_COLLATERAL: Final = 5
# An attempt lists at most this number of nodes that it made way for, beside that of its verdict.
MAX_DRAINED_NODES: Final = 20
_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")


class Cause(enum.StrEnum):
    """A class of causes, as in ``onCauses``, in metrics and in a job's status."""

    USER_CODE = "UserCode"
    OUT_OF_MEMORY = "OutOfMemory"
    BAD_COMMAND_OR_IMAGE = "BadCommandOrImage"
    CONFIGURATION = "Configuration"
    NODE = "Node"
    HARDWARE = "Hardware"
    PREEMPTION = "Preemption"
    EVICTION = "Eviction"
    SCALE_DOWN = "ScaleDown"
    DEADLINE = "Deadline"
    HANG = "Hang"
    PLATFORM = "Platform"
    UNKNOWN = "Unknown"

    @property
    def is_infrastructure(self) -> bool:
        """Return whether the user's program and spec are not to blame."""
        return self in _INFRASTRUCTURE

    @property
    def phrase(self) -> str:
        """Return it as words, such as ``out of memory``."""
        return "cause unknown" if self is Cause.UNKNOWN else _WORD.sub(" ", self.value).lower()


_INFRASTRUCTURE: Final = frozenset(
    {
        Cause.NODE, Cause.HARDWARE, Cause.PREEMPTION, Cause.EVICTION, Cause.SCALE_DOWN,
        Cause.PLATFORM,
    }
)  # fmt: skip


class Confidence(enum.StrEnum):
    """How well a verdict is proved."""

    # By the API: the node's state, the pod's reason, the kubelet's report.
    HIGH = "High"
    # By a launcher's summary, or by a line that has one meaning.
    MEDIUM = "Medium"
    # By an exit code, or by the order in time.
    LOW = "Low"


@attrs.frozen
class Verdict:
    """The first cause of the end of an attempt.

    ``message`` is at most a few lines: the exception, or what the exit code or signal means.
    """

    cause: Cause
    confidence: Confidence
    message: str
    time: datetime.datetime
    # Empty for a cause that concerns the job as a whole, such as a deadline.
    replica: str = ""
    pod: str = ""
    node: str = ""
    # The rank of the process to blame; a replica may have several.
    rank: int | None = None
    # The process's own: launchers such as torchrun exit with 1 for any failure.
    exit_code: int | None = None
    # True if its output only reports that others are gone, and none of these has reported an end.
    is_consequence: bool = False
    # True if the node to blame was taken down on purpose: it has no fault, so it is not charged.
    is_planned: bool = False
    # Replicas that ended as a consequence: the first of them, and how many there are.
    collateral: Sequence[str] = ()
    collateral_count: int = 0

    @property
    def place(self) -> str:
        """Return where it happened: the replica, its rank and its node, as far as known."""
        details = [f"rank {self.rank}"] if self.rank is not None else []
        details += [f"node {self.node}"] if self.node else []
        return f"{self.replica} ({', '.join(details)})" if details else self.replica

    @property
    def located_cause(self) -> str:
        """Return the cause and where it happened, or who noticed it."""
        noticed = "noticed by " if self.cause is Cause.HANG else ""
        return f"{self.cause}, {noticed}{self.place}" if self.replica else self.cause

    @property
    def message_lines(self) -> Sequence[str]:
        return [text for line in self.message.splitlines() if (text := line.strip())]

    @property
    def headline(self) -> str:
        """Return it for people, such as ``worker-1 (rank 2): no data (exit code 1, user code)``.

        Of a message of several lines, the others are the last output of the program.
        """
        text = next(iter(self.message_lines), "")
        code = "" if self.exit_code is None else f"exit code {self.exit_code}"
        sure = self.confidence is not Confidence.LOW or self.cause is Cause.UNKNOWN
        phrase = f"{'' if sure else 'probably '}{self.cause.phrase}"
        details = ", ".join(filter(None, ("" if f"{code}:" in text else code, phrase)))
        # The replica that reports a timeout is not the one that it has waited for.
        waited = " gave up waiting" if self.cause is Cause.HANG else ""
        return (
            f"{self.place}{waited}: {text} ({details})" if self.replica else f"{text} ({details})"
        )

    def describe(self, shown_text: str = "") -> str:
        """Return it in one line, such as ``OutOfMemory, worker-1 (node n2), high confidence: ...``.

        Its message is left out if ``shown_text`` contains it.
        """
        text = f": {'; '.join(self.message_lines)}" if self.message not in shown_text else ""
        others = f"; ended with it: {self.describe_collateral()}" if self.collateral_count else ""
        return f"{self.located_cause}, {self.confidence.lower()} confidence{text}{others}"

    def may_name(self, replica: str) -> bool:
        """Return whether a replica is to blame or collateral, of which not all are listed."""
        is_cut = self.collateral_count > len(self.collateral)
        return is_cut or replica in (self.replica, *self.collateral)

    def with_collateral(self, replicas: Sequence[str]) -> Self:
        """Return it with further replicas that end as a consequence."""
        names = [name for name in replicas if name not in (self.replica, *self.collateral)]
        return attrs.evolve(
            self,
            collateral=(*self.collateral, *names)[:MAX_COLLATERAL],
            collateral_count=self.collateral_count + len(names),
        )

    def describe_collateral(self) -> str:
        """Name the first replicas that fell as a consequence, with the number of the others."""
        return first_names(self.collateral, MAX_COLLATERAL, count=self.collateral_count)


@attrs.frozen
class Attempt:
    """One run of a job, from its creation or restart to its end."""

    # From 0, as restarts are counted.
    number: int
    start_time: datetime.datetime
    # None while it runs.
    end_time: datetime.datetime | None = None
    # None while it runs, and if it succeeded.
    verdict: Verdict | None = None
    # The number of replicas that it was created with.
    world_size: int = 0
    # Seconds from its end until the next attempt ran; None until then.
    lost_s: int | None = None
    # When its pods began to leave nodes that were about to go, beside the node of the verdict.
    drained_nodes: Mapping[str, datetime.datetime] = attrs.field(factory=dict)


def last_verdict(attempts: Sequence[Attempt]) -> Verdict | None:
    """Return the verdict on the last attempt that failed."""
    return next((one.verdict for one in reversed(attempts) if one.verdict), None)
