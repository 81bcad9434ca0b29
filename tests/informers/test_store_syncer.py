"""Store and handlers agree with the server after any sequence of events and lists."""

import asyncio
import time
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.meta import PODS, UID, Object, ObjectKey, ObjectMeta, OwnerReference, WatchEventType
from dlctl.informers.handlers import Change, Handlers
from dlctl.informers.store import Store
from dlctl.informers.store_syncer import StoreSyncer, version_number
from dlctl.kube.decoding import Malformed
from dlctl.metrics import Metrics
from tests.support.timing import turns_during

METRICS = Metrics()


@attrs.define
class Server:
    """The objects of a server, and all its events; a watcher may miss some."""

    objects: dict[str, Object] = attrs.field(factory=dict)
    version: int = 0

    def step(self, name: str, owner: str) -> tuple[WatchEventType, Object]:
        """Create, change or delete one object; an empty owner deletes."""
        self.version += 1
        old = self.objects.get(name)
        if old and not owner:
            del self.objects[name]
            return WatchEventType.DELETED, self._made(name, old.metadata.uid, "gone")
        uid = old.metadata.uid if old else UID(f"uid-{self.version}")
        self.objects[name] = new = self._made(name, uid, owner or "u1")
        return (WatchEventType.MODIFIED if old else WatchEventType.ADDED), new

    def _made(self, name: str, uid: UID, owner: str) -> Object:
        return Object(
            metadata=ObjectMeta(
                name=name,
                uid=uid,
                resource_version=str(self.version),
                labels={"job": owner},
                owner_references=(OwnerReference(uid=UID(owner), controller=True),),
            )
        )


def store_by_job() -> Store[Object]:
    store = Store[Object]()
    store.add_index("job", lambda obj: [obj.metadata.label("job") or ""])
    return store


@attrs.define
class ChangeFollower:
    """The objects as they follow from the notifications alone."""

    objects: dict[ObjectKey, Object] = attrs.field(factory=dict)
    store: Store[Object] = attrs.field(factory=store_by_job)

    def on_change(self, change: Change[Object]) -> None:
        self.follow(change)
        assert self.store.get(change.key) == change.new

    def follow(self, change: Change[Object]) -> None:
        known = self.objects.get(change.key)
        if change.new is None:
            self.objects.pop(change.key, None)
        else:
            # The old object of a change is the last one notified.
            assert change.old == known
            self.objects[change.key] = change.new


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["event", "missed", "relist"]),
        st.sampled_from("abcd"),
        st.sampled_from(["u1", "u2", ""]),
    ),
    max_size=40,
)


@given(STEPS)
async def test_store_and_handlers_follow_events_and_relists_after_gaps(
    steps: list[tuple[str, str, str]],
) -> None:
    server, view = Server(), ChangeFollower()
    handlers = Handlers[Object](PODS, METRICS)
    handlers.add(view.on_change, ())
    syncer = StoreSyncer(PODS, view.store, handlers, METRICS)
    await syncer.replace([], [], "0")
    gap = False
    for what, name, owner in steps:
        change, obj = server.step(name, owner)
        if what == "relist" or gap:
            # After a gap a reflector never continues with events.
            gap = what == "missed"
            if not gap:
                await syncer.replace(list(server.objects.values()), [], str(server.version))
        elif what == "missed":
            gap = True
        else:
            syncer.set_version(obj.metadata.resource_version)
            syncer.apply(change, obj)
    await syncer.replace(list(server.objects.values()), [], str(server.version))
    agree(server, view)


def agree(server: Server, view: ChangeFollower) -> None:
    truth = {obj.key: obj for obj in server.objects.values()}
    assert {obj.key: obj for obj in view.store} == view.objects == truth
    assert view.store.resource_version == str(server.version)
    for owner in ("u1", "u2", "gone"):
        expected = {k for k, obj in truth.items() if obj.metadata.label("job") == owner}
        assert {obj.key for obj in view.store.owned_by("", UID(owner))} == expected
        assert {obj.key for obj in view.store.indexed("job", owner)} == expected


async def test_object_listed_both_malformed_and_well_formed_counts_as_well_formed() -> None:
    store = Store[Object]()
    syncer = StoreSyncer(PODS, store, Handlers(PODS, METRICS), METRICS)
    old = Object(metadata=ObjectMeta(name="a", resource_version="1"))
    new = Object(metadata=ObjectMeta(name="a", resource_version="2"))
    await syncer.replace([old], [], "1")
    await syncer.replace([new], [Malformed(old.key, "1", "broken")], "2")
    assert list(store) == [new]


async def test_pruned_object_stays_pruned_until_it_changes() -> None:
    store = Store[Object]()
    syncer = StoreSyncer(PODS, store, Handlers(PODS, METRICS), METRICS)
    large = Object(metadata=ObjectMeta(name="a", resource_version="1", labels={"of": "no use"}))
    small = Object(metadata=ObjectMeta(name="a", resource_version="1"))
    await syncer.replace([large], [], "1")
    (stored,) = store
    store.prune(stored, small)
    again = Object(metadata=ObjectMeta(name="a", resource_version="1", labels={"of": "no use"}))
    await syncer.replace([again], [], "2")
    assert list(store) == [small]

    changed = Object(metadata=ObjectMeta(name="a", resource_version="3"))
    await syncer.replace([changed], [], "3")
    store.prune(stored, small)
    assert list(store) == [changed]


async def test_long_list_yields_to_the_event_loop() -> None:
    syncer = StoreSyncer(PODS, Store[Object](), Handlers(PODS, METRICS), METRICS)
    objects = [Object(metadata=ObjectMeta(name=f"o{n}")) for n in range(5000)]
    assert await turns_during(syncer.replace(objects, [], "1")) > 20


async def test_comparing_a_list_with_the_store_yields_to_the_event_loop() -> None:
    syncer = StoreSyncer(PODS, Store[Object](), Handlers(PODS, METRICS), METRICS)
    objects = [Object(metadata=ObjectMeta(name=f"o{n}")) for n in range(5000)]
    await syncer.replace(objects, [], "1")
    # For each object of the list, and for each that is stored.
    assert await turns_during(syncer.replace(objects, [], "2")) > 35
    # To look for objects that are gone, and to notify of them.
    assert await turns_during(syncer.replace([], [], "3")) > 35


async def test_object_that_is_listed_twice_changes_once() -> None:
    changes: list[Change[Object]] = []
    handlers = Handlers[Object](PODS, METRICS)
    handlers.add(changes.append, ())
    store = Store[Object]()
    syncer = StoreSyncer(PODS, store, handlers, METRICS)
    earlier, later = (
        Object(metadata=ObjectMeta(name="a", resource_version=version)) for version in ("1", "2")
    )
    await syncer.replace([earlier, later], [], "2")
    assert [change.new for change in changes] == list(store) == [later]


async def test_late_handler_yields_to_the_event_loop_and_gets_changes_after_their_objects() -> None:
    server, view = Server(), ChangeFollower()
    handlers = Handlers[Object](PODS, METRICS)
    syncer = StoreSyncer(PODS, view.store, handlers, METRICS)
    for number in range(5000):
        server.step(f"o{number}", "u1")
    await syncer.replace(list(server.objects.values()), [], str(server.version))
    changes: list[Change[Object]] = []
    handlers.add(changes.append, view.store)
    handlers.add(view.follow, view.store)
    for name, owner in (("o4999", "u2"), ("o4998", ""), ("new", "u1"), ("o4998", "u2")):
        syncer.apply(*server.step(name, owner))
    for name in ("o4997", "o4999", "o0"):
        server.step(name, "")
    assert len(view.objects) < 500

    relisting = syncer.replace(list(server.objects.values()), [], str(server.version))
    assert await turns_during(asyncio.gather(relisting, handlers.caught_up.wait())) > 15
    agree(server, view)
    assert all(change.initial for change in changes[:5000])
    assert len(changes) == 5000 + 4 + 3
    syncer.apply(*server.step("new", "u2"))
    assert changes[-1].key.name == "new"


def test_version_gauge_has_the_last_15_digits() -> None:
    assert version_number("1234567890123456789") == 567890123456789
    assert version_number("") == version_number("abc") == 0


@pytest.mark.parametrize("turn", range(1, 5))
async def test_object_that_is_pruned_during_a_list_stays_pruned(turn: int) -> None:
    store = Store[Object]()
    syncer = StoreSyncer(PODS, store, Handlers(PODS, METRICS), METRICS)
    names = [f"pod-{number}" for number in range(300)]

    def large() -> list[Object]:
        labels = {"of": "no use"}
        return [
            Object(metadata=ObjectMeta(name=n, resource_version="1", labels=labels)) for n in names
        ]

    await syncer.replace(large(), [], "1")
    stored = store.get(ObjectKey("", names[0]))
    assert stored is not None
    small = Object(metadata=ObjectMeta(name=names[0], resource_version="1"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(syncer.replace(large(), [], "2"))
        for _ in range(turn):
            await asyncio.sleep(0)
        store.prune(stored, small)
    assert store.get(ObjectKey("", names[0])) == small


@pytest.mark.parametrize("uid", ["new", ""])
async def test_malformed_object_keeps_the_state_of_no_other_of_its_name(uid: str) -> None:
    store = Store[Object]()
    syncer = StoreSyncer(PODS, store, Handlers(PODS, METRICS), METRICS)
    old = Object(metadata=ObjectMeta(name="a", uid=UID("old"), resource_version="1"))
    malformed = Malformed(old.key, "2", "broken", uid=uid)
    kept = [] if uid else [old]
    await syncer.replace([old], [], "1")
    await syncer.replace([], [malformed], "2")
    assert list(store) == kept
    await syncer.replace([old], [], "3")
    syncer.apply_malformed(WatchEventType.ADDED, malformed)
    assert list(store) == kept


async def test_handler_is_shown_nothing_more_once_replays_are_stopped() -> None:
    handlers, seen = Handlers[Object](PODS, METRICS), []
    objects = [Object(metadata=ObjectMeta(name=f"pod-{number}")) for number in range(600)]
    handlers.add(lambda change: seen.append(change.key), objects)
    shown = len(seen)
    assert 0 < shown < len(objects)
    handlers.stop_replays()
    await asyncio.wait_for(handlers.caught_up.wait(), 1)
    await asyncio.sleep(0)
    assert len(seen) == shown


async def test_objects_that_take_long_let_the_event_loop_run_in_between() -> None:
    def take_long(_: object) -> Any:
        end_s = time.perf_counter() + 0.006
        while time.perf_counter() < end_s:
            pass
        return []

    store = Store[Object]()
    store.add_index("slow", take_long)
    handlers = Handlers[Object](PODS, METRICS)
    handlers.add(take_long, ())
    syncer = StoreSyncer(PODS, store, handlers, METRICS)
    found = [Object(metadata=ObjectMeta(name=f"p{n}", uid=UID(f"u{n}"))) for n in range(10)]
    # Each is stored, and shown to the handler.
    assert await turns_during(syncer.replace(found, [], "1")) >= 20
