"""A storage that is closed, and another one that continues with its file."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from dlctl.api.meta import CONFIG_MAPS, ObjectKey
from dlctl.errors import ConfigError
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.storage.journal import REWRITE_BYTES, REWRITE_FACTOR, Journal
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.storage.stored_objects import StorageEvent


@contextmanager
def opened(
    path: Path, rewrite_bytes: int = REWRITE_BYTES, rewrite_factor: int = REWRITE_FACTOR
) -> Iterator[Storage]:
    with Journal.open(path, rewrite_bytes, rewrite_factor) as kept:
        storage = Storage()
        kept.attach(storage)
        yield storage


def config_map(name: str, **data: str) -> dict[str, Any]:
    labels = {"app": name}
    metadata = {"name": name, "namespace": "ml", "uid": f"uid-of-{name}", "labels": labels}
    return {"metadata": metadata, "data": data}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "objects.jsonl"


def test_objects_continue_with_their_revisions_and_uids(path: Path) -> None:
    with opened(path) as storage:
        first = storage.create(CONFIG_MAPS, config_map("a", x="1"))
        storage.create(CONFIG_MAPS, config_map("b"))
        changed = storage.update(CONFIG_MAPS, first, config_map("a", x="ü\n"))
        storage.remove(CONFIG_MAPS, storage.objects(CONFIG_MAPS)[1])
        last = storage.revision
    with opened(path) as storage:
        (stored,) = storage.objects(CONFIG_MAPS)
        assert (stored.uid, stored.revision) == ("uid-of-a", changed.revision)
        assert stored.labels == {"app": "a"}
        assert stored.decoded(CONFIG_MAPS) == changed.decoded(CONFIG_MAPS)
        assert storage.revision == last
        assert storage.create(CONFIG_MAPS, config_map("c")).revision == last + 1


def test_watch_from_before_a_restart_is_expired(path: Path) -> None:
    with opened(path) as storage:
        storage.create(CONFIG_MAPS, config_map("a"))
        before = storage.revision - 1
    with opened(path) as storage, pytest.raises(StatusError, match="too old"):
        storage.watch(CONFIG_MAPS, before, lambda: None)


def test_observers_see_restored_objects_as_new(path: Path) -> None:
    with opened(path) as storage:
        storage.create(CONFIG_MAPS, config_map("a"))
    seen: list[StorageEvent] = []
    with Journal.open(path) as kept:
        storage = Storage()
        storage.observers.append(seen.append)
        kept.attach(storage)
    assert [(event.key.name, event.old) for event in seen] == [("a", None)]


def test_unfinished_last_line_was_never_acknowledged(path: Path) -> None:
    with opened(path) as storage:
        storage.create(CONFIG_MAPS, config_map("a"))
    path.write_bytes(path.read_bytes() + b'{"revision":9,"plural":"configm')
    with opened(path) as storage:
        assert [stored.key for stored in storage.objects(CONFIG_MAPS)] == [ObjectKey("ml", "a")]


def test_damaged_line_is_an_error_that_names_it(path: Path) -> None:
    with opened(path) as storage:
        storage.create(CONFIG_MAPS, config_map("a"))
    path.write_bytes(b'{"revision":1}\n{"revi\n' + path.read_bytes())
    with pytest.raises(ConfigError, match="line 2 is damaged"), opened(path):
        pass


def test_large_history_is_rewritten(path: Path) -> None:
    with opened(path, rewrite_bytes=10_000) as storage:
        stored = storage.create(CONFIG_MAPS, config_map("a"))
        for number in range(200):
            stored = storage.update(CONFIG_MAPS, stored, config_map("a", x=f"{number:0500}"))
            assert path.stat().st_size < 12_000
    with opened(path) as storage:
        assert storage.objects(CONFIG_MAPS)[0].decoded(CONFIG_MAPS)["data"]["x"] == f"{199:0500}"
        assert storage.revision == stored.revision


@pytest.mark.parametrize("is_late", [False, True])
def test_rewrite_that_is_cut_off_leaves_the_file_as_it_is(path: Path, is_late: bool) -> None:
    with opened(path) as storage:
        storage.create(CONFIG_MAPS, config_map("a", x="1" * 999))
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path, rewrite_bytes=1, rewrite_factor=0) as storage:
        before = path.read_bytes()
        limit = len(before) + 9 if is_late else 99
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))
        try:
            with pytest.raises(StatusError, match=r"objects\.jsonl: File too large"):
                storage.create(CONFIG_MAPS, config_map("b"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        assert path.read_bytes() == before
        assert [*path.parent.iterdir()] == [path]


def test_write_for_which_there_is_room_needs_none_for_a_rewrite(path: Path) -> None:
    with opened(path, rewrite_bytes=1) as storage:
        stored = storage.create(CONFIG_MAPS, config_map("a", x="1" * 999))
        # As where a second file of this size does not fit.
        path.with_suffix(".new").mkdir()
        for number in range(9):
            stored = storage.update(CONFIG_MAPS, stored, config_map("a", x=f"{number}"))
        path.with_suffix(".new").rmdir()
    with opened(path) as storage:
        (stored,) = storage.objects(CONFIG_MAPS)
        assert stored.decoded(CONFIG_MAPS)["data"] == {"x": "8"}


def test_rewritten_file_is_the_one_that_is_written_to(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, flushed = os.fsync, []

    def fail_for_each_second(file: int) -> None:
        flushed.append(file)
        if len(flushed) % 2 == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        flush(file)

    with opened(path, rewrite_bytes=1000) as storage:
        stored = storage.create(CONFIG_MAPS, config_map("a"))
        with monkeypatch.context() as failing, suppress(StatusError):
            failing.setattr(os, "fsync", fail_for_each_second)
            while not flushed:
                stored = storage.update(
                    CONFIG_MAPS, stored, config_map("a", x=f"{stored.revision:0300}")
                )
        storage.create(CONFIG_MAPS, config_map("b"))
    with opened(path) as storage:
        assert [stored.key.name for stored in storage.objects(CONFIG_MAPS)] == ["a", "b"]


def test_file_without_room_for_a_rewrite_is_named(path: Path) -> None:
    with opened(path) as storage:
        storage.create(CONFIG_MAPS, config_map("a", x="1" * 999))
    before = path.read_bytes()
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (99, unlimited[1]))
    try:
        with pytest.raises(ConfigError, match=r"objects\.jsonl: File too large"), opened(path):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert path.read_bytes() == before


def test_only_the_owner_may_read_the_file(path: Path) -> None:
    with opened(path):
        assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_write_that_cannot_be_kept_does_not_happen(path: Path) -> None:
    def fail(_: StorageEvent) -> None:
        raise OSError("no space left on device")

    with opened(path) as storage:
        storage.create(CONFIG_MAPS, config_map("a"))
        storage.persist = fail
        with pytest.raises(OSError, match="no space"):
            storage.create(CONFIG_MAPS, config_map("b"))
        assert len(storage.objects(CONFIG_MAPS)) == 1


def test_write_that_is_cut_off_leaves_no_part_of_its_line(path: Path) -> None:
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as storage:
        storage.create(CONFIG_MAPS, config_map("a"))
        # As on a disk that is full after 9 bytes, and has room again later.
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 9, unlimited[1]))
        try:
            with pytest.raises(StatusError, match=r"objects\.jsonl: File too large"):
                storage.create(CONFIG_MAPS, config_map("b"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        storage.create(CONFIG_MAPS, config_map("c"))
    with opened(path) as storage:
        assert [stored.key.name for stored in storage.objects(CONFIG_MAPS)] == ["a", "c"]
