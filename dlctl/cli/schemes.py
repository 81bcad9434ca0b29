"""Which of the kinds a controller serves: all, or those that ``--enable-scheme`` names."""

from collections.abc import Sequence

from dlctl.dialects.kinds import Kind
from dlctl.errors import ConfigError


def enabled(kinds: Sequence[Kind], schemes: Sequence[str]) -> list[Kind]:
    """Return the kinds of the given names, in whichever group they are; all if none is given.

    :raises ConfigError: if there is no kind of such a name.
    """
    wanted = {scheme.lower() for scheme in schemes}
    known = {kind.singular for kind in kinds}
    if unknown := sorted(wanted - known):
        raise ConfigError(
            f"--enable-scheme {', '.join(unknown)}: there is no such kind; "
            f"known are {', '.join(sorted(known))}"
        )
    return [kind for kind in kinds if not wanted or kind.singular in wanted]
