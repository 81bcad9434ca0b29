"""How replicas ended, as text. Pure."""

from collections.abc import Iterable

from dlctl.name_lists import first_messages
from dlctl.reconcilers.observed_replica import ObservedReplica


def first_terminations(replicas: Iterable[ObservedReplica]) -> str:
    """Name the first of these replicas, with how they ended, and count the others."""
    return first_messages(
        [
            f"{o.replica}: {o.termination.reason}, {o.termination.message}"
            if o.termination
            else f"{o.replica}"
            for o in replicas
        ]
    )
