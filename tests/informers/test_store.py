"""The store and its indexes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.meta import UID, Object, ObjectKey, ObjectMeta, OwnerReference
from dlctl.informers.store import Index, Store


def make_object(name: str, *, owner: str = "", version: str = "1", **labels: str) -> Object:
    owners = (OwnerReference(uid=UID(owner), controller=True),) if owner else None
    meta = ObjectMeta(
        name=name,
        namespace="ns",
        resource_version=version,
        labels=labels or None,
        owner_references=owners,
    )
    return Object(metadata=meta)


def key(name: str) -> ObjectKey:
    return ObjectKey("ns", name)


def words(obj: Object) -> list[str]:
    return (obj.metadata.label("words") or "").split("-")


def job(obj: Object) -> list[str]:
    value = obj.metadata.label("job")
    return [] if value is None else [value]


def store_by_job() -> Store[Object]:
    store = Store[Object]()
    store.add_index("job", job)
    return store


def test_objects_are_found_by_their_controller() -> None:
    store = Store[Object]()
    first, second = make_object("a", owner="u1"), make_object("b", owner="u1")
    for obj in (first, second, make_object("c", owner="u2"), make_object("d")):
        store.put(obj)
    assert store.owned_by("ns", UID("u1")) == [first, second]
    assert store.owned_by("ns", UID("u3")) == []


def test_owner_in_another_namespace_owns_nothing() -> None:
    store = Store[Object]()
    store.put(make_object("a", owner="u1"))
    assert store.owned_by("other", UID("u1")) == []


def test_owner_that_is_not_the_controller_is_not_indexed() -> None:
    meta = ObjectMeta(name="a", owner_references=(OwnerReference(uid=UID("u1")),))
    store = Store[Object]()
    store.put(Object(metadata=meta))
    assert store.owned_by("ns", UID("u1")) == []


def test_change_moves_an_object_between_buckets() -> None:
    store = store_by_job()
    store.put(make_object("a", job="x"))
    moved = make_object("a", job="y")
    old = store.put(moved)
    assert old == make_object("a", job="x")
    assert store.indexed("job", "x") == []
    assert store.indexed("job", "y") == [moved]
    assert store.index_values("job") == ["y"]


def test_unknown_index_raises() -> None:
    with pytest.raises(KeyError):
        Store[Object]().indexed("app", "x")


def test_index_has_the_new_state_of_an_object_that_keeps_its_bucket() -> None:
    store = store_by_job()
    store.put(make_object("a", job="x"))
    store.put(make_object("a", job="x", version="2"))
    [found] = store.indexed("job", "x")
    assert found.metadata.resource_version == "2"


def test_empty_bucket_is_removed() -> None:
    index = Index(words)
    a, b = make_object("a", words="x-y"), make_object("b", words="y-z")
    index.replace(key("a"), None, a)
    index.replace(key("b"), None, b)
    assert (index["x"], index["y"], len(list(index))) == ([a], [a, b], 3)
    index.replace(key("a"), a, None)
    assert (index["x"], index["y"], len(list(index))) == ([], [b], 2)
    index.replace(key("b"), b, make_object("b", words="w"))
    assert len(list(index)) == 1


def test_index_added_later_covers_existing_objects() -> None:
    store = Store[Object]()
    store.put(make_object("a", words="x-y"))
    store.add_index("words", words)
    assert store.indexed("words", "y") == [make_object("a", words="x-y")]
    with pytest.raises(ValueError, match="already"):
        store.add_index("words", words)


def test_failing_index_function_is_logged_and_leaves_the_object_unindexed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store[Object]()
    store.add_index("broken", lambda obj: [str(1 // len(obj.metadata.resource_version))])
    store.put(make_object("a", version=""))
    assert len(store) == 1
    assert "ZeroDivisionError" in caplog.text
    store.put(make_object("a", version="7"))
    assert [obj.key for obj in store.indexed("broken", "1")] == [key("a")]
    store.put(make_object("a", version=""))
    assert store.indexed("broken", "1") == []


def test_removing_a_missing_object_does_nothing() -> None:
    assert Store[Object]().remove(key("a")) is None


def test_iteration_covers_the_objects_at_its_start() -> None:
    store = Store[Object]()
    store.put(make_object("a"))
    store.put(make_object("b"))
    for obj in store:
        store.remove(obj.key)
    assert len(store) == 0


def test_cleared_store_keeps_its_indexes() -> None:
    store = store_by_job()
    store.add_index("words", words)
    store.put(make_object("a", job="x"))
    fresh = store.start_replacement()
    assert len(fresh) == 0
    fresh.put(make_object("b", job="y", words="v"))
    fresh.resource_version = "7"
    store.replace_contents(fresh)
    assert store.indexed("job", "x") == []
    assert store.indexed("job", "y") == store.indexed("words", "v") == [*store]
    assert store.resource_version == "7"


OBJECTS = st.builds(
    make_object,
    st.sampled_from("abcde"),
    owner=st.sampled_from(["", "u1", "u2"]),
    job=st.sampled_from(["x", "y"]),
)


@given(st.lists(st.tuples(st.booleans(), OBJECTS)))
def test_buckets_match_the_objects_exactly(steps: list[tuple[bool, Object]]) -> None:
    store = store_by_job()
    model: dict[ObjectKey, Object] = {}
    for put, obj in steps:
        if put:
            assert store.put(obj) == model.get(obj.key)
            model[obj.key] = obj
        else:
            assert store.remove(obj.key) == model.pop(obj.key, None)
    assert {obj.key: obj for obj in store} == model
    for uid in ("u1", "u2"):
        owned = {k for k, o in model.items() if (c := o.metadata.controller) and c.uid == uid}
        assert {obj.key for obj in store.owned_by("ns", UID(uid))} == owned
    for value in ("x", "y"):
        labelled = {k for k, o in model.items() if o.metadata.label("job") == value}
        assert {obj.key for obj in store.indexed("job", value)} == labelled
    in_use = {o.metadata.label("job") for o in model.values()}
    assert len(list(store._indexes["job"])) == len(in_use)
