"""Tasks to run in a launcher, as values: equal tasks are one task."""

import attrs

from dlctl.api.meta import UID, ObjectKey
from dlctl.api.objects.scalers import Script


@attrs.frozen
class LauncherContainer:
    """The launcher's main container, in the pod of this name and UID."""

    pod: ObjectKey
    uid: UID
    container: str


@attrs.frozen
class WriteFiles:
    """Write files, by path, in the launcher; done once they or a later generation are written."""

    launcher: LauncherContainer
    files: tuple[tuple[str, str], ...]
    # :attr:`Membership.generation` of their hosts. A new generation writes the same files again:
    # another controller may have written other contents meanwhile.
    generation: int


@attrs.frozen
class ProbeWorkers:
    """Find which of the workers the launcher can reach."""

    launcher: LauncherContainer
    workers: frozenset[str]


@attrs.frozen
class CheckInUse:
    """Find which of the workers the launcher still uses; each is a name and an address."""

    launcher: LauncherContainer
    workers: frozenset[tuple[str, str]]
    # True if the check confirms an earlier one that found unused workers.
    confirms: bool = False


@attrs.frozen
class RunScript:
    """Run a scaler's script, with ``name:slots`` of each worker that joins or leaves."""

    launcher: LauncherContainer
    scaler: UID
    script: Script
    workers: tuple[str, ...]


ExecTask = WriteFiles | ProbeWorkers | CheckInUse | RunScript
