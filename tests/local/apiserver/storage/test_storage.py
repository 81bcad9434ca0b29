import gc
import weakref
from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, SECRETS, ObjectKey, WatchEventType
from dlctl.local.apiserver.endpoints.label_selectors import parse_label_selector
from dlctl.local.apiserver.endpoints.selectors import Selector
from dlctl.local.apiserver.endpoints.watches import visible_event
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.storage.storage import Storage, Watcher
from dlctl.local.apiserver.storage.stored_objects import StorageEvent

APP_X = Selector(CONFIG_MAPS, parse_label_selector("app=x"))
EVERYTHING = Selector(CONFIG_MAPS)


def config_map(name: str, app: str, value: int) -> JSON:
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": {"v": str(value)}}


def put(storage: Storage, name: str, app: str = "x", value: int = 0) -> None:
    old = storage.get(CONFIG_MAPS, ObjectKey("default", name))
    if old is None:
        storage.create(CONFIG_MAPS, config_map(name, app, value))
    else:
        storage.update(CONFIG_MAPS, old, config_map(name, app, value))


def remove(storage: Storage, name: str) -> None:
    old = storage.get(CONFIG_MAPS, ObjectKey("default", name))
    if old is not None:
        storage.remove(CONFIG_MAPS, old)


def listed(storage: Storage, selector: Selector, revision: int) -> dict[str, bytes]:
    found = storage.objects_at(CONFIG_MAPS, "", revision)
    return {s.key.name: s.encoded(CONFIG_MAPS) for s in found if selector.matches(s)}


@attrs.define
class Follower:
    """A client that lists once and then follows the watch."""

    storage: Storage
    selector: Selector
    objects: dict[str, bytes] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        revision = self.storage.revision
        self.objects = listed(self.storage, self.selector, revision)
        self.watcher = self.storage.watch(CONFIG_MAPS, revision, lambda: None)

    watcher: Watcher = attrs.field(init=False)

    def follow(self) -> Mapping[str, bytes]:
        for change in self.watcher.drain():
            self._apply(change)
        return self.objects

    def _apply(self, change: StorageEvent) -> None:
        match visible_event(change, self.selector):
            case WatchEventType.ADDED:
                assert change.key.name not in self.objects
            case WatchEventType.MODIFIED:
                assert change.key.name in self.objects
            case WatchEventType.DELETED:
                del self.objects[change.key.name]
                return
            case None:
                return
        assert change.new is not None
        self.objects[change.key.name] = change.new.encoded(CONFIG_MAPS)


names = st.sampled_from("abc")
writes = st.one_of(
    st.tuples(st.just("put"), names, st.sampled_from("xy"), st.integers(0, 2)),
    st.tuples(st.just("remove"), names, st.just(""), st.just(0)),
    st.tuples(st.just("follow"), st.just(""), st.just(""), st.just(0)),
)


@settings(max_examples=150)
@given(st.lists(writes, max_size=40))
def test_watch_from_any_version_ends_up_equal_to_a_list(
    operations: list[tuple[str, str, str, int]],
) -> None:
    storage = Storage()
    followers = [Follower(storage, APP_X), Follower(storage, EVERYTHING)]
    past = {storage.revision: listed(storage, EVERYTHING, storage.revision)}
    for operation, name, app, value in operations:
        if operation == "put":
            put(storage, name, app, value)
        elif operation == "remove":
            remove(storage, name)
        else:
            followers += [Follower(storage, APP_X), Follower(storage, EVERYTHING)]
            followers[0].follow()
        past[storage.revision] = listed(storage, EVERYTHING, storage.revision)

    for follower in followers:
        assert follower.follow() == listed(storage, follower.selector, storage.revision)
    for revision, objects in past.items():
        assert listed(storage, EVERYTHING, revision) == objects


def test_every_write_is_one_revision_and_equal_content_is_none() -> None:
    storage = Storage()
    start = storage.revision
    put(storage, "a")
    put(storage, "a")
    assert storage.revision == start + 1
    put(storage, "a", value=1)
    remove(storage, "a")
    assert storage.revision == start + 3


def test_stale_update_is_a_conflict_and_changes_nothing() -> None:
    storage = Storage()
    put(storage, "a")
    stale = storage.get(CONFIG_MAPS, ObjectKey("default", "a"))
    assert stale is not None
    put(storage, "a", value=1)
    with pytest.raises(StatusError, match="the object has been modified"):
        storage.update(CONFIG_MAPS, stale, config_map("a", "x", 2))
    with pytest.raises(StatusError, match="the object has been modified"):
        storage.remove(CONFIG_MAPS, stale)


def test_writes_of_observers_are_observed_in_order() -> None:
    storage = Storage()
    seen: list[tuple[str, int]] = []

    def first(change: StorageEvent) -> None:
        seen.append(("first", change.revision))
        if change.key.name == "a":
            put(storage, "b")

    storage.observers += [first, lambda change: seen.append(("second", change.revision))]
    put(storage, "a")
    revision = storage.revision - 1
    assert seen == [
        ("first", revision),
        ("second", revision),
        ("first", revision + 1),
        ("second", revision + 1),
    ]


def test_watch_and_list_of_compacted_versions_are_expired() -> None:
    storage = Storage(window=2)
    start = storage.revision
    for name in "abc":
        put(storage, name)
    with pytest.raises(StatusError) as caught:
        storage.watch(CONFIG_MAPS, start, lambda: None)
    assert caught.value.code == 410
    with pytest.raises(StatusError) as caught:
        storage.objects_at(CONFIG_MAPS, "", start)
    assert caught.value.code == 410
    assert len(storage.watch(CONFIG_MAPS, start + 1, lambda: None).drain()) == 2


def test_history_of_a_resource_is_dropped_while_only_others_change() -> None:
    storage = Storage(window=2)
    changes: list[weakref.ref[StorageEvent]] = []
    storage.observers.append(lambda change: changes.append(weakref.ref(change)))
    put(storage, "a")
    for name in "bcd":
        storage.create(SECRETS, config_map(name, "x", 0))
    gc.collect()
    assert [change() is None for change in changes] == [True, True, False, False]


def test_watcher_that_is_never_read_is_dropped() -> None:
    storage = Storage(window=3)
    watcher = storage.watch(CONFIG_MAPS, storage.revision, lambda: None)
    for value in range(5):
        put(storage, "a", value=value)
    assert watcher.overflowed
    assert watcher.drain() == []


def test_namespaces_with_a_common_prefix_are_separate() -> None:
    storage = Storage()
    for namespace in ("a", "a-b", "ab"):
        obj = config_map("n", "x", 0)
        obj["metadata"]["namespace"] = namespace
        storage.create(CONFIG_MAPS, obj)
    assert [each.key.namespace for each in storage.objects(CONFIG_MAPS, "a")] == ["a"]
    assert [each.key.namespace for each in storage.objects(CONFIG_MAPS)] == ["a-b", "a", "ab"]
