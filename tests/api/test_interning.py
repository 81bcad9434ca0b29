"""Objects are equal to what was decoded, share what is equal, and no more is kept than that."""

import json
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.interning import Interner
from dlctl.api.meta import LAST_APPLIED_ANNOTATION, MAX_ITEMS, Object
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.dependents import DependentObject
from dlctl.api.objects.jobs import MAX_STORED_BYTES, JobObject
from dlctl.api.objects.nodes import Node
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.objects.scalers import ScalerObject
from dlctl.api.objects.undecoded_object import TOO_DEEP
from dlctl.api.objects.workloads import Workload
from dlctl.kube.decoding import decode

TIME = "2026-01-01T12:00:00Z"


def pod(index: int, state: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    """Return a replica as the server sends it, decoded on its own."""
    wire = {
        "metadata": {
            "name": f"linear-worker-{index}",
            "namespace": "ml",
            "uid": str(uuid.UUID(int=index)),
            "labels": {"training.kubeflow.org/job-name": "linear", "index": str(index)},
            "ownerReferences": [{"kind": "PyTorchJob", "uid": "job", "controller": True}],
            **metadata,
        },
        "spec": {"nodeName": "node-1", "restartPolicy": "Never"},
        "status": {
            "phase": "Running",
            "startTime": TIME,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": TIME}],
            "containerStatuses": [
                {"name": "a", "state": state or {"running": {"startedAt": TIME}}}
            ],
        },
    }
    return decode(json.dumps(wire).encode(), Pod)


def test_replicas_share_all_but_their_names() -> None:
    interner = Interner()
    one, two = (pod(index).for_store(interner) for index in (1, 2))
    assert one.spec is two.spec
    assert one.metadata.owner_references is two.metadata.owner_references
    assert one.status
    assert two.status
    assert one.status.conditions is two.status.conditions
    assert one.status.container_statuses is two.status.container_statuses
    assert one.metadata.labels
    assert two.metadata.labels
    assert next(iter(one.metadata.labels)) is next(iter(two.metadata.labels))
    assert two == pod(2)


@given(
    st.lists(st.builds(pod, st.integers(0, 3), labels=st.none() | st.just({})), max_size=5),
    st.lists(st.builds(pod, st.integers(0, 3), st.just({"terminated": {"exitCode": 1}}))),
)
def test_stored_object_equals_the_decoded_one(running: list[Pod], ended: list[Pod]) -> None:
    interner = Interner()
    for each in running + ended:
        kept = each.for_store(interner)
        assert kept.status == each.status
        assert kept.metadata.labels == (each.metadata.labels or None)


def least_time_s(run: Callable[[], object]) -> float:
    """Return the processor time of the quickest of a few runs."""
    times = []
    for _ in range(5):
        started = time.thread_time()
        run()
        times.append(time.thread_time() - started)
    return min(times)


def references(values: Sequence[object]) -> list[int]:
    return [sys.getrefcount(value) for value in values]


def test_parts_that_were_not_seen_for_long_are_forgotten() -> None:
    interner = Interner()
    parts: list[object] = [(index, "part") for index in range(3000)]
    before = references(parts)
    for part in parts:
        assert interner.part(part) is part
    kept = sum(after > b for after, b in zip(references(parts), before, strict=True))
    assert 1024 <= kept <= 2048


def test_part_that_is_seen_again_and_again_is_never_forgotten() -> None:
    interner = Interner()
    first = interner.part(("always", 0))
    for index in range(5000):
        interner.part(("once", index))
        assert interner.part(("always", 0)) is first


def test_long_texts_and_last_messages_are_not_kept() -> None:
    interner = Interner()
    last = {"terminated": {"exitCode": 1, "message": "m" * 2000}}
    failed = pod(1, last, annotations={"note": "n" * 2000})
    assert failed.status
    assert failed.status.container_statuses
    assert failed.metadata.annotations
    values = [failed.status.container_statuses, failed.metadata.annotations["note"]]
    before = references(values)
    copy = failed.for_store(interner)
    del copy
    assert references(values) == before


def test_large_parts_are_not_kept() -> None:
    interner = Interner()
    parts: list[object] = [("long", "x" * 100_000), tuple(map(str, range(1000)))]
    before = references(parts)
    assert [interner.part(part) is part for part in parts] == [True, True]
    assert references(parts) == before


def test_parts_that_are_kept_take_little_memory_together() -> None:
    interner = Interner()
    parts: list[object] = [(index, "x" * 4000) for index in range(2000)]
    before = references(parts)
    for part in parts:
        interner.part(part)
    kept = sum(after > b for after, b in zip(references(parts), before, strict=True))
    assert 0 < 4000 * kept < 2 << 20


def test_to_intern_many_labels_takes_no_longer_than_to_decode_them() -> None:
    labels = {f"label-{number}": "" for number in range(MAX_ITEMS)}
    wire = json.dumps({"metadata": {"name": "a", "labels": labels}}).encode()
    decoding_s = least_time_s(lambda: decode(wire, Pod))
    decoded, interner = decode(wire, Pod), Interner()
    assert least_time_s(lambda: decoded.for_store(interner)) < decoding_s
    assert decoded.for_store(interner) == decoded


@pytest.mark.parametrize(
    "as_", [BatchJob, DependentObject, Node, Pod, ScalerObject, Service, Workload]
)
def test_stores_keep_no_annotations_that_dlctl_does_not_read(as_: type[Object]) -> None:
    wire = {"metadata": {"name": "a", "annotations": {"b": "c"}}}
    kept = decode(json.dumps(wire).encode(), as_).for_store(Interner())
    assert kept.metadata.annotations is None


def test_too_deep_spec_stays_as_it_was_decoded() -> None:
    deep = '{"a": ' * 100 + "1" + "}" * 100
    job = decode(f'{{"metadata": {{"name": "a"}}, "spec": {deep}}}'.encode(), JobObject)
    kept = job.for_store(Interner())
    assert kept.spec is TOO_DEEP
    assert kept.truncated_spec == job.truncated_spec != b"null"


@pytest.mark.parametrize("size", [0, MAX_STORED_BYTES])
@pytest.mark.parametrize("part", ["spec", "annotations"])
def test_stores_keep_of_a_large_job_neither_spec_nor_annotations(part: str, size: int) -> None:
    wire: dict[str, Any] = {
        "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "spec": {"a": "b"},
        "status": {"phase": "Running"},
    }
    (wire if part == "spec" else wire["metadata"])[part]["large"] = "x" * size
    whole = decode(json.dumps(wire).encode(), JobObject)
    kept = whole.for_store(Interner())
    assert whole.has_spec
    assert kept.has_spec == (size == 0)
    assert (kept == whole) == (size == 0)
    assert (kept.metadata.labels, kept.status) == (whole.metadata.labels, whole.status)
    assert len(msgspec.json.encode(kept)) < 1000


def test_kubectls_copy_of_a_job_is_not_kept_and_does_not_make_it_large() -> None:
    spec = {"a": "x" * (MAX_STORED_BYTES // 2)}
    annotations = {"a": "b", LAST_APPLIED_ANNOTATION: json.dumps({"spec": spec})}
    wire = {"metadata": {"name": "a", "annotations": annotations}, "spec": spec}
    whole = decode(json.dumps(wire).encode(), JobObject)
    kept = whole.for_store(Interner())
    assert kept.has_spec
    assert kept.spec == whole.spec
    assert kept.metadata.annotations == {"a": "b"}
