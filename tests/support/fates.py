"""What is to become of the replicas of a job, one run after the other: a script for a node.

The replica that decides the job goes last, so that no outcome depends on who was faster. Pure;
who acts it out is ``hollow``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dlctl.api.job import Job, Replica
from tests.builders import make_job


@attrs.frozen
class Exit:
    """The program exits; where its pod may restart it, the next fate is of the same pod."""

    code: int = 0
    reason: str = ""


@attrs.frozen
class Evicted:
    """The node ends the pod for want of memory; its program exits with a code of its own."""

    code: int = 137


@attrs.frozen
class Deleted:
    """Somebody deletes the pod while it runs."""


@attrs.frozen
class Drained:
    """The pod's node is drained: it is told to go, for a reason that is not its own."""


@attrs.frozen
class RunsOn:
    """The program runs until it is stopped."""


Fate = Exit | Evicted | Deleted | Drained | RunsOn
DONE = Exit(0)
RUNS_ON = RunsOn()
OOM_KILLED = Exit(137, "OOMKilled")


@attrs.define
class Part:
    """The script of one replica, and how far it has come."""

    fates: Sequence[Fate]
    began: int = 0
    played: int = 0

    @property
    def played_out(self) -> bool:
        """Tell whether nothing will change any more of its own accord."""
        if self.played >= len(self.fates):
            return True
        return self.began > self.played and isinstance(self.fates[self.played], RunsOn)

    @property
    def at_last(self) -> bool:
        return self.played >= len(self.fates) - 1

    def pods(self, restarts_in_place: bool) -> int:
        """Return how many pods it takes to play all of it."""
        ends = [
            fate
            for fate in self.fates[:-1]
            if not (restarts_in_place and isinstance(fate, Exit)) and not isinstance(fate, RunsOn)
        ]
        return 1 + len(ends)


@attrs.define
class Script:
    """The parts of all replicas of a job; ``decider`` is the one whose last fate ends the job."""

    parts: Mapping[Replica, Part]
    decider: Replica

    def may_end(self, replica: Replica) -> bool:
        """Tell whether a replica may meet the fate it is at now."""
        if replica != self.decider or not self.parts[replica].at_last:
            return True
        return all(part.played_out for other, part in self.parts.items() if other != replica)


def script_of(
    manifest: Mapping[str, Any],
    fates: Mapping[str, Sequence[Fate]] | None = None,
    *,
    decider: str = "",
) -> Script:
    """Return the script of a manifest; replicas that are not named do what they are for.

    By default the chief decides; servers and MPI's workers run on, and the others end well.
    """
    job = make_job(manifest)
    given = fates or {}
    parts = {
        replica: Part(given.get(str(replica)) or _usual(job, replica)) for replica in job.replicas
    }
    deciding = next((r for r in parts if str(r) == decider), job.deciders.succeed[0])
    return Script(parts, deciding)


def _usual(job: Job, replica: Replica) -> Sequence[Fate]:
    serves = replica.type in ("server", "ps") and replica != job.deciders.succeed[0]
    # What mpirun starts in them is no end of theirs.
    sleeps = replica.type == "worker" and bool(job.count("launcher"))
    return (RUNS_ON,) if serves or sleeps else (DONE,)
