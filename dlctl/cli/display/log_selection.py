"""Which replicas' logs are shown, by the names of the replicas. Pure."""

from collections.abc import Sequence
from typing import Final

import attrs

# If a job has more replicas, only the chief's log is shown unless others are asked for.
MAX_SHOWN: Final = 8
_CHIEF_TYPES: Final = ("master", "launcher", "chief")


@attrs.frozen
class LogSelection:
    """The requested replicas: names, types or ``all``; none leaves the choice to the job's size."""

    wanted: tuple[str, ...] = ()
    quiet: bool = False

    def shown(self, names: Sequence[str]) -> list[str]:
        """Return the replicas whose logs are shown, the chief first."""
        if self.quiet:
            return []
        ordered = chief_first(names)
        if self.wanted:
            return [name for name in ordered if any(_matches(name, each) for each in self.wanted)]
        return ordered if len(ordered) <= MAX_SHOWN else ordered[:1]

    def unmatched(self, names: Sequence[str]) -> list[str]:
        """Return what is wanted and matches no replica."""
        return [each for each in self.wanted if not any(_matches(name, each) for name in names)]


def _matches(name: str, wanted: str) -> bool:
    return wanted in (name, name.rpartition("-")[0], "all")


def chief_first(names: Sequence[str]) -> list[str]:
    """Return the names with that of the chief, which prints the loss, at the beginning."""
    chief = _chief(names)
    return sorted(names, key=lambda name: name != chief)


def _chief(names: Sequence[str]) -> str:
    """Return the replica of rank 0; where there is no master, that is the first worker."""
    by_type = {name.rpartition("-")[0].lower(): name for name in reversed(names)}
    for type_ in (*_CHIEF_TYPES, "worker"):
        if type_ in by_type:
            return by_type[type_]
    return names[0] if names else ""
