"""What is asked of a running launcher: values, so that asking twice is asking once."""

import attrs

from dlctl.api.elastic import Script
from dlctl.api.meta import UID, ObjectKey


@attrs.frozen
class LauncherContainer:
    """The container that dials the workers, in the one pod of that name and UID."""

    pod: ObjectKey
    uid: UID
    container: str


@attrs.frozen
class WriteFiles:
    """Put files, by path, into the launcher; ends once they, or a later edition, are there."""

    launcher: LauncherContainer
    files: tuple[tuple[str, str], ...]
    # :attr:`Roster.edition` of their hosts. The same files are delivered again with the next one:
    # another controller may have delivered others meanwhile.
    generation: int


@attrs.frozen
class ProbeWorkers:
    """Find which of the workers answer, seen from the launcher."""

    launcher: LauncherContainer
    workers: frozenset[str]


@attrs.frozen
class CheckInUse:
    """Look which of the workers the launcher still uses; each is a name and an address."""

    launcher: LauncherContainer
    workers: frozenset[tuple[str, str]]
    # Whether it is to confirm what an earlier look has not found in use.
    confirms: bool = False


@attrs.frozen
class RunScript:
    """Run a scaler's script, with ``name:slots`` of each worker that comes or goes."""

    launcher: LauncherContainer
    scaler: UID
    script: Script
    workers: tuple[str, ...]


ExecTask = WriteFiles | ProbeWorkers | CheckInUse | RunScript
