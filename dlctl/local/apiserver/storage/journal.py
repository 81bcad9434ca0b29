"""The objects of a storage in a file, so that they survive its process.

One line per change, written before anyone can see the change: a process that is killed loses
nothing that it has acknowledged. The file is not flushed to the disk with each change, so a machine
that loses power may lose the last seconds; what remains is a state that existed. The file is
rewritten as the current objects alone when it is opened, and when it has grown large.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import attrs
import msgspec

from dlctl.api.meta import ObjectKey
from dlctl.errors import ConfigError
from dlctl.local.apiserver import status
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.storage.stored_objects import (
    StorageEvent,
    StoredObject,
    TableName,
)

# A rewrite takes a second per 100 MB or so: it is worth it once most of the file is history.
REWRITE_BYTES: Final = 32 << 20
REWRITE_FACTOR: Final = 4
_NONE: Final = msgspec.Raw(b"null")


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change: an object's new content, or null for its removal. The first has no object."""

    revision: int
    group: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    object: msgspec.Raw = _NONE


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


@attrs.define(eq=False)
class Journal:
    """An open file of changes; :meth:`attach` a storage that is empty otherwise."""

    path: Path
    rewrite_bytes: int = REWRITE_BYTES
    rewrite_factor: int = REWRITE_FACTOR
    _file: int = attrs.field(init=False, default=-1)
    # The size of the file.
    _bytes: int = attrs.field(init=False, default=0)
    # Set by the first rewrite, when a storage is attached.
    _rewrite_at: int = attrs.field(init=False, default=0)
    _storage: Storage | None = attrs.field(init=False, default=None)

    @classmethod
    @contextmanager
    def open(
        cls, path: Path, rewrite_bytes: int = REWRITE_BYTES, rewrite_factor: int = REWRITE_FACTOR
    ) -> "Iterator[Self]":
        """Yield the journal for the duration of the block; flush it to the disk at its end."""
        journal = cls(path, rewrite_bytes, rewrite_factor)
        try:
            yield journal
        finally:
            journal._close()

    def attach(self, storage: Storage) -> None:
        """Restore the objects into the storage, and keep all that it writes from then on.

        :raises ConfigError: if the file is damaged other than by an unfinished last line, or there
            is no room to rewrite it.
        """
        revision, objects = self._read()
        self._storage = storage
        storage.restore(objects, revision)
        try:
            self._rewrite(storage)
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from error
        storage.persist = self._append
        storage.replay()

    def _read(self) -> tuple[int, dict[tuple[TableName, ObjectKey], StoredObject]]:
        objects: dict[tuple[TableName, ObjectKey], StoredObject] = {}
        revision = 0
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        # Text after the last newline was cut off while it was written, so no client has seen it.
        for number, text in enumerate(lines[:-1], start=1):
            try:
                line = _decode(text)
            except msgspec.DecodeError as error:
                raise ConfigError(
                    f"{self.path}: line {number} is damaged ({error}); restore the file from a "
                    "backup, or remove it to begin with an empty cluster"
                ) from error
            revision = max(revision, line.revision)
            key = ObjectKey(line.namespace, line.name)
            at = ((line.group, line.plural), key)
            if not line.plural:
                continue
            if bytes(line.object) == bytes(_NONE):
                objects.pop(at, None)
            else:
                objects[at] = StoredObject.restored(key, line.revision, bytes(line.object))
        return revision, objects

    def _append(self, change: StorageEvent) -> None:
        if self._bytes > self._rewrite_at and self._storage is not None:
            try:
                self._rewrite(self._storage)
            except OSError:
                # There may still be room for the line, and the next attempt takes as long.
                self._rewrite_at = 2 * self._bytes
        try:
            self._append_line(_line(change.table, change.key, change.revision, change.new))
        except OSError as error:
            raise status.internal_error(f"{self.path}: {error.strerror}") from error

    def _append_line(self, line: bytes) -> None:
        size = self._bytes
        try:
            self._write(self._file, line)
        except OSError:
            # The part of the line that fitted on the disk would damage the next one.
            os.ftruncate(self._file, size)
            self._bytes = size
            raise

    def _rewrite(self, storage: Storage) -> None:
        """Replace the file by one with the current objects, and leave it open for more."""
        new = self.path.with_suffix(".new")
        new.unlink(missing_ok=True)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        size, self._bytes = self._bytes, 0
        try:
            self._write(file, _encode(_Line(storage.revision)) + b"\n")
            for table, stored in storage.all_objects():
                self._write(file, _line(table, stored.key, stored.revision, stored))
            os.fsync(file)
            os.replace(new, self.path)
        except OSError:
            self._bytes = size
            os.close(file)
            new.unlink(missing_ok=True)
            raise
        old, self._file = self._file, file
        self._rewrite_at = max(self.rewrite_bytes, self.rewrite_factor * self._bytes)
        if old >= 0:
            # Without a flush, which could fail: nobody reads the old file again.
            os.close(old)

    def _write(self, file: int, line: bytes) -> None:
        self._bytes += len(line)
        while line:
            line = line[os.write(file, line) :]

    def _close(self) -> None:
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1


def _line(table: TableName, key: ObjectKey, revision: int, stored: StoredObject | None) -> bytes:
    content = _NONE if stored is None else msgspec.Raw(stored.content())
    return _encode(_Line(revision, *table, *key, content)) + b"\n"
