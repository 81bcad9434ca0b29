"""Deletions of collections hit what they should, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.meta import (
    MANAGED_BY,
    MANAGED_BY_LABEL,
    PODS,
    UID,
    Object,
    ObjectMeta,
    OwnerReference,
)
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.informers.store import Store
from dlctl.local.apiserver.endpoints import selectors
from dlctl.local.apiserver.storage.stored_objects import StoredObject
from dlctl.reconcilers.children.collection_deletion import (
    MAX_COUNT,
    MAX_COUNT_OF_RESTART,
    MAX_EXAMINED_PER_CHILD,
    MAX_KEPT,
    MAX_LABELS,
    MIN_COUNT,
    CollectionDeletion,
    collection_deletion,
)
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.collection_deletions import with_collection_deletions
from tests.builders import NOW

JOB = UID("job")
LABELS = {MANAGED_BY_LABEL: MANAGED_BY, "job-name": "linear"}


def child(
    name: str,
    *,
    owner: str = JOB,
    labels: Mapping[str, str] | None = None,
    namespace: str = "ml",
    terminating: bool = False,
) -> Object:
    return Object(
        ObjectMeta(
            name,
            namespace,
            UID(f"uid-of-{namespace}-{name}"),
            "1",
            labels={**LABELS, "replica": name, **(labels or {})},
            owner_references=(OwnerReference(uid=UID(owner), controller=True),) if owner else None,
            deletion_timestamp=NOW if terminating else None,
        )
    )


def children(count: int, **fields: Any) -> list[Object]:
    return [child(f"worker-{index}", **fields) for index in range(count)]


def store_of(*objects: Object) -> Store[Object]:
    store: Store[Object] = Store()
    store.resource_version = "7"
    for obj in objects:
        store.put(obj)
    return store


def deletion(deleted: Sequence[Object], *others: Object) -> CollectionDeletion | None:
    return collection_deletion(JOB, PODS, deleted, store_of(*deleted, *others))


def found(one: CollectionDeletion, objects: Sequence[Object]) -> set[UID]:
    """Return the objects of the namespace that the API server finds."""
    options = one.options
    selector = selectors.parse(PODS, options["label_selector"], options["field_selector"], ())
    return {obj.metadata.uid for obj in objects if selector.matches(_stored(obj))}


def _stored(obj: Object) -> StoredObject:
    metadata = obj.metadata
    wire = {"name": metadata.name, "namespace": metadata.namespace, "labels": metadata.labels}
    return StoredObject.of({"metadata": {**wire, "uid": metadata.uid}}, 1)


def test_selector_has_the_labels_that_all_children_share() -> None:
    deleted = children(MIN_COUNT)
    one = deletion(deleted, child("other", labels={"job-name": "other"}, owner="other"))
    assert one
    assert one.children == tuple(deleted)
    assert one.options == {
        "namespace": "ml",
        "label_selector": f"{MANAGED_BY_LABEL}={MANAGED_BY},job-name=linear",
        "field_selector": "",
        "resource_version": "7",
        "resource_version_match": "Exact",
    }


def test_few_children_are_deleted_singly() -> None:
    assert deletion(children(MIN_COUNT - 1)) is None


def test_more_children_than_a_request_has_time_for_are_deleted_singly() -> None:
    assert deletion(children(MAX_COUNT))
    assert deletion(children(MAX_COUNT + 1)) is None


def test_children_with_more_labels_than_a_url_takes_are_deleted_singly() -> None:
    for count, is_single in ((MAX_LABELS, False), (MAX_LABELS + 1, True)):
        # Beside its own.
        more = {f"label-{n}": "" for n in range(count - len(LABELS) - 1)}
        deleted = children(MIN_COUNT, labels=more)
        assert (deletion(deleted) is None) is is_single


@pytest.mark.parametrize("phase", JobPhase)
def test_large_restart_does_not_wait_for_one_deletion_after_another(phase: JobPhase) -> None:
    pods = tuple(Pod(child.metadata) for child in children(MAX_COUNT_OF_RESTART + 1))
    store: Store[Pod] = Store()
    for pod in pods:
        store.put(pod)
    plan = Plan(JobStatus(phase=phase), deleted_pods=pods)
    made = with_collection_deletions(plan, JOB, store, Store())
    is_single = phase is JobPhase.RESTARTING
    assert (made.deleted_pods, len(made.deleted_collections)) == (
        (pods, 0) if is_single else ((), 1)
    )
    assert list(made.deletions(PODS)) == list(pods)


def test_few_children_of_a_large_cluster_are_deleted_singly() -> None:
    most = MIN_COUNT * MAX_EXAMINED_PER_CHILD
    others = [child(f"other-{n}", labels={"job-name": f"{n}"}) for n in range(most - MIN_COUNT)]
    assert deletion(children(MIN_COUNT), *others)
    assert deletion(children(MIN_COUNT), *others, child("more")) is None


def test_children_without_the_label_of_the_store_are_deleted_singly() -> None:
    assert deletion(children(MIN_COUNT, labels={MANAGED_BY_LABEL: "me"})) is None


@pytest.mark.parametrize(
    ("other", "together"),
    [
        pytest.param(child("copy", owner=""), False, id="no controller"),
        pytest.param(child("copy", owner="other"), False, id="another owner"),
        pytest.param(child("copy", owner="", terminating=True), False, id="terminating"),
        pytest.param(child("copy", owner="", namespace="other"), True, id="another namespace"),
        pytest.param(child("copy", owner="", labels={"job-name": "b"}), True, id="another label"),
    ],
)
def test_foreign_object_with_the_same_labels_prevents_it(other: Object, together: bool) -> None:
    assert (deletion(children(MIN_COUNT), other) is not None) is together


def test_children_that_stay_are_excluded_up_to_a_number() -> None:
    kept = [child(f"kept-{index}") for index in range(MAX_KEPT)]
    one = deletion(children(MIN_COUNT), *kept, child("leaving", terminating=True))
    assert one
    excluded = one.options["field_selector"].split(",")
    assert set(excluded) == {f"metadata.name!={obj.metadata.name}" for obj in kept}
    assert deletion(children(MIN_COUNT), *kept, child("one-more")) is None


OBJECTS = st.builds(
    child,
    st.text("abc", min_size=1, max_size=3),
    owner=st.sampled_from([JOB, JOB, JOB, JOB, "other", ""]),
    labels=st.dictionaries(st.sampled_from(["job-name", "type"]), st.sampled_from(["a", ""])),
    terminating=st.booleans(),
)


@given(objects=st.lists(OBJECTS, unique_by=lambda obj: obj.key, max_size=30), data=st.data())
def test_only_the_owners_children_are_hit(objects: list[Object], data: st.DataObject) -> None:
    owned = [o for o in objects if o.metadata.controller and o.metadata.controller.uid == JOB]
    live = [obj for obj in owned if not obj.metadata.is_terminating]
    deleted = [obj for obj in live if data.draw(st.integers(0, 3))]
    one = collection_deletion(JOB, PODS, deleted, store_of(*objects))
    if one is None:
        return
    hit, wanted = found(one, objects), {obj.metadata.uid for obj in deleted}
    terminating = {obj.metadata.uid for obj in owned if obj.metadata.is_terminating}
    assert wanted <= hit <= wanted | terminating
