"""Changes of objects over time, as ``kubectl get --watch`` prints them.

A record begins with the objects at its start, and contains every later change.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Final

import attrs

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl

# One change per line.
_LINES: Final = 'jsonpath={.type} {.object}{"\\n"}'


@attrs.frozen
class ObjectChange:
    """An object after a change, or its last state if it was deleted."""

    object: JSON
    deleted: bool

    @property
    def uid(self) -> str:
        uid: str = self.object["metadata"]["uid"]
        return uid

    @property
    def name(self) -> str:
        name: str = self.object["metadata"]["name"]
        return name


@attrs.define
class ChangeRecord:
    """The changes so far, in order for each object."""

    _output: IO[str]
    _changes: list[ObjectChange] = attrs.field(init=False, factory=list)
    _rest: str = attrs.field(init=False, default="")

    def changes(self) -> Sequence[ObjectChange]:
        *lines, self._rest = (self._rest + self._output.read()).split("\n")
        for line in lines:
            kind, _, obj = line.partition(" ")
            self._changes.append(ObjectChange(json.loads(obj), kind == "DELETED"))
        return self._changes

    def present(self) -> list[JSON]:
        """Return the objects that exist now."""
        last = {change.uid: change for change in self.changes()}
        return [change.object for change in last.values() if not change.deleted]


@contextmanager
def watching(kubectl: Kubectl, resource: str, *selection: str) -> Iterator[ChangeRecord]:
    """Record the changes of a resource during the block; kubectl must not end before."""
    options = ("--watch", "--output-watch-events", "-o", _LINES, *selection)
    command = kubectl.command("get", resource, *options)
    with (
        tempfile.NamedTemporaryFile("w") as told,
        open(told.name) as heard,
        subprocess.Popen(command, stdout=told, stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            yield ChangeRecord(heard)
            if process.poll() is not None:
                raise AssertionError(f"{' '.join(command)} ended: {process.communicate()[1]}")
        finally:
            process.terminate()
