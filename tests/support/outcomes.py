"""Outcomes of a job's replicas, one run after the other: a script for the fake kubelet.

The replica that ends the job goes last, so that no outcome depends on timing. Pure;
``fake_kubelet`` plays it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dlctl.api.job import Job, Replica
from tests.builders import make_job


@attrs.frozen
class Exit:
    """The program exits; where its pod may restart it, the next outcome is of the same pod."""

    code: int = 0
    reason: str = ""


@attrs.frozen
class Evicted:
    """The node evicts the pod for lack of memory; its program exits with the given code."""

    code: int = 137


@attrs.frozen
class Deleted:
    """The pod is deleted while it runs."""


@attrs.frozen
class Drained:
    """The pod's node is drained: the pod is deleted with a disruption condition."""


@attrs.frozen
class KeepsRunning:
    """The program runs until it is stopped."""


Outcome = Exit | Evicted | Deleted | Drained | KeepsRunning
DONE = Exit(0)
KEEPS_RUNNING = KeepsRunning()
OOM_KILLED = Exit(137, "OOMKilled")


@attrs.define
class ReplicaScript:
    """The script of one replica, and its progress."""

    outcomes: Sequence[Outcome]
    started_count: int = 0
    finished_count: int = 0

    @property
    def finished(self) -> bool:
        """Return whether nothing will change any more by itself."""
        if self.finished_count >= len(self.outcomes):
            return True
        return self.started_count > self.finished_count and isinstance(
            self.outcomes[self.finished_count], KeepsRunning
        )

    @property
    def at_last_outcome(self) -> bool:
        return self.finished_count >= len(self.outcomes) - 1

    def pods(self, restarts_in_place: bool) -> int:
        """Return the number of pods needed to play all of it."""
        ends = [
            outcome
            for outcome in self.outcomes[:-1]
            if not (restarts_in_place and isinstance(outcome, Exit))
            and not isinstance(outcome, KeepsRunning)
        ]
        return 1 + len(ends)


@attrs.define
class Script:
    """The scripts of a job's replicas; the last outcome of ``last_replica`` ends the job."""

    parts: Mapping[Replica, ReplicaScript]
    last_replica: Replica

    def may_end(self, replica: Replica) -> bool:
        """Return whether a replica may play its current outcome."""
        if replica != self.last_replica or not self.parts[replica].at_last_outcome:
            return True
        return all(part.finished for other, part in self.parts.items() if other != replica)


def script_of(
    manifest: Mapping[str, Any],
    outcomes: Mapping[str, Sequence[Outcome]] | None = None,
    *,
    last_replica: str = "",
) -> Script:
    """Return the script of a manifest; replicas that are not named get a default outcome.

    By default the chief is last; servers and MPI's workers keep running, and the others succeed.
    """
    job = make_job(manifest)
    given = outcomes or {}
    parts = {
        replica: ReplicaScript(given.get(str(replica)) or _default_outcomes(job, replica))
        for replica in job.replicas
    }
    last = next(
        (r for r in parts if str(r) == last_replica), job.success_policy.success_replicas[0]
    )
    return Script(parts, last)


def _default_outcomes(job: Job, replica: Replica) -> Sequence[Outcome]:
    serves = replica.type in ("server", "ps") and replica != job.success_policy.success_replicas[0]
    # Processes that mpirun starts in them do not end them.
    sleeps = replica.type == "worker" and bool(job.replica_count("launcher"))
    return (KEEPS_RUNNING,) if serves or sleeps else (DONE,)
