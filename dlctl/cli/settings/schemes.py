"""The kinds that a controller serves: all, or those that ``--enable-scheme`` names."""

from collections.abc import Sequence

from dlctl.dialects.kind import Kind
from dlctl.errors import ConfigError


def enabled(kinds: Sequence[Kind], schemes: Sequence[str]) -> list[Kind]:
    """Return the kinds with the given names, in any group; all kinds if no name is given.

    :raises ConfigError: if a name is unknown.
    """
    wanted = {scheme.lower() for scheme in schemes}
    known = {kind.singular for kind in kinds}
    if unknown := sorted(wanted - known):
        raise ConfigError(
            f"--enable-scheme {', '.join(unknown)}: unknown kind; "
            f"use any of {', '.join(sorted(known))}"
        )
    return [kind for kind in kinds if not wanted or kind.singular in wanted]
