"""A job's failure policy: which failures restart what, and how often. JobSet's shape.

Conditions of rules are those of batch/v1's pod failure policies, and the causes of verdicts.
"""

import enum
from collections.abc import Sequence
from typing import Final

import attrs

from dlctl.api.status.verdict import Cause

# Reasons of the failures of jobs; the first is JobSet's.
REACHED_MAX_RESTARTS: Final = "ReachedMaxRestarts"
FAIL_JOB_ACTION: Final = "FailJobAction"


class RestartStrategy(enum.StrEnum):
    """When the pods of the next attempt are created."""

    # Each as soon as its predecessor is gone.
    RECREATE = "Recreate"
    # All at once, when all pods of the last attempt are gone.
    BLOCKING_RECREATE = "BlockingRecreate"


class FailureAction(enum.StrEnum):
    """The reaction to a failure."""

    FAIL_JOB = "FailJob"
    RESTART_JOB = "RestartJob"
    RESTART_JOB_AND_IGNORE_MAX_RESTARTS = "RestartJobAndIgnoreMaxRestarts"
    RESTART_REPLICA = "RestartReplica"
    RESTART_REPLICA_AND_IGNORE_MAX_RESTARTS = "RestartReplicaAndIgnoreMaxRestarts"

    @property
    def counts(self) -> bool:
        """Return whether it counts towards ``maxRestarts``."""
        return self in (FailureAction.RESTART_JOB, FailureAction.RESTART_REPLICA)

    @property
    def restarts_replica(self) -> bool:
        """Return whether it restarts a replica alone."""
        return self in (
            FailureAction.RESTART_REPLICA,
            FailureAction.RESTART_REPLICA_AND_IGNORE_MAX_RESTARTS,
        )


@attrs.frozen
class ExitCodes:
    """Matches failures by exit code."""

    values: frozenset[int]
    # True if it matches codes that are not listed instead.
    is_negated: bool = False
    # Empty for any container.
    container: str = ""


@attrs.frozen
class FailureRule:
    """One rule: it applies to a failure that each of its conditions matches; empty ones match."""

    action: FailureAction
    name: str = ""
    exit_codes: ExitCodes | None = None
    # Types and statuses of conditions of the failed pod, one of which must be met.
    pod_conditions: Sequence[tuple[str, str]] = ()
    causes: frozenset[Cause] = frozenset()
    # Replica types, in lower case.
    target_replicas: frozenset[str] = frozenset()


@attrs.frozen
class FailurePolicy:
    """The rules of a job; the first that applies decides."""

    max_restarts: int = 0
    restart_strategy: RestartStrategy = RestartStrategy.BLOCKING_RECREATE
    rules: Sequence[FailureRule] = ()

    @property
    def restarts_replicas(self) -> bool:
        """Return whether it may restart replicas alone."""
        return any(rule.action.restarts_replica for rule in self.rules)
