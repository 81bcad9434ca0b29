"""The memory that objects take in stores, whatever number of labels and other parts they have."""

import tracemalloc
from typing import Any, Final

import msgspec
import pytest

from dlctl.api.interning import Interner
from dlctl.api.meta import MAX_ITEMS, Object
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.dependents import DependentObject
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.kept_metadata import MAX_METADATA_BYTES
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.objects.scalers import ScalerObject
from dlctl.api.objects.workloads import Workload
from dlctl.dialects.kubeflow.mpi_v2beta1.spec_authors import MPIJobObject
from dlctl.informers.watch_events import EventDecoder, MalformedEvent, ObjectEvent
from tests.informers.scripted import (
    INITIAL_END,
    ScriptedServer,
    added,
    bookmark,
    listed,
    pod,
    watched,
)
from tests.informers.watching import watching
from tests.support.cost_growth import no_garbage_collection

_COUNT: Final = 9_000
_TEXTS: Final = {f"k{number}": "" for number in range(_COUNT)}
_NAMED: Final = [{"name": f"k{number}"} for number in range(_COUNT)]
_OWNERS: Final = [{"kind": "A", "name": "a", "uid": f"u{number}"} for number in range(_COUNT)]


@pytest.mark.parametrize(
    ("as_", "parts"),
    [
        pytest.param(Pod, {"metadata": {"labels": _TEXTS}}, id="labels"),
        pytest.param(Pod, {"metadata": {"annotations": _TEXTS}}, id="annotations"),
        pytest.param(Pod, {"metadata": {"ownerReferences": _OWNERS}}, id="owners"),
        pytest.param(Pod, {"metadata": {"finalizers": list(_TEXTS)}}, id="finalizers"),
        pytest.param(Pod, {"spec": {"schedulingGates": _NAMED}}, id="gates"),
        pytest.param(Pod, {"spec": {"initContainers": _NAMED}}, id="init containers"),
        pytest.param(Pod, {"status": {"conditions": [{}] * _COUNT}}, id="conditions"),
        pytest.param(Pod, {"status": {"containerStatuses": _NAMED}}, id="statuses"),
        pytest.param(Pod, {"status": {"initContainerStatuses": _NAMED}}, id="init statuses"),
        pytest.param(JobObject, {"metadata": {"labels": _TEXTS}}, id="labels of a job"),
        pytest.param(MPIJobObject, {"metadata": {"annotations": _TEXTS}}, id="of an MPIJob"),
        pytest.param(
            BatchJob,
            {"spec": {"template": {"metadata": {"labels": _TEXTS}}}},
            id="labels of a Job's pods",
        ),
        pytest.param(
            BatchJob,
            {"spec": {"template": {"spec": {"nodeSelector": _TEXTS}}}},
            id="node selector of a Job's pods",
        ),
        pytest.param(BatchJob, {"status": {"conditions": [{}] * _COUNT}}, id="of a Job"),
    ],
)
def test_object_with_many_parts_is_malformed_and_takes_no_memory(
    as_: type[Object], parts: dict[str, Any]
) -> None:
    event, held_bytes = _held(as_, parts)
    assert isinstance(event, MalformedEvent)
    assert event.object.uid == "u"
    assert f"use at most {MAX_ITEMS}" in event.object.error
    assert held_bytes < 50_000


_LONG_TEXTS: Final = {f"{number:0250}/{'k' * 63}": "v" * 63 for number in range(950)}
_LONG_OWNERS: Final = [{"kind": "A", "name": "a" * 250, "uid": f"u{n}"} for n in range(950)]
_MESSAGE: Final = "m" * 1_200_000


@pytest.mark.parametrize("as_", [Pod, Service, BatchJob, DependentObject, JobObject, ScalerObject])
@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"labels": _LONG_TEXTS}, id="labels"),
        pytest.param({"finalizers": list(_LONG_TEXTS)}, id="finalizers"),
        pytest.param({"ownerReferences": _LONG_OWNERS}, id="owners"),
    ],
)
def test_object_with_much_metadata_is_malformed_and_takes_no_memory(
    as_: type[Object], metadata: dict[str, Any]
) -> None:
    event, held_bytes = _held(as_, {"metadata": metadata})
    assert isinstance(event, MalformedEvent)
    assert f"use at most {MAX_METADATA_BYTES}" in event.object.error
    assert held_bytes < 50_000


@pytest.mark.parametrize(
    ("as_", "parts"),
    [
        pytest.param(Pod, {"status": {"message": _MESSAGE}}, id="message of a pod"),
        pytest.param(
            Pod, {"status": {"conditions": [{"type": "a", "message": _MESSAGE}]}}, id="condition"
        ),
        pytest.param(
            Pod,
            {"status": {"containerStatuses": [{"state": {"terminated": {"message": _MESSAGE}}}]}},
            id="termination message",
        ),
        pytest.param(Pod, {"spec": {"schedulingGates": [{"name": _MESSAGE}]}}, id="gate"),
        pytest.param(BatchJob, {"status": {"conditions": [{"message": _MESSAGE}]}}, id="of a Job"),
        pytest.param(Workload, {"status": {"conditions": [{"message": _MESSAGE}]}}, id="Workload"),
        pytest.param(
            BatchJob,
            {"spec": {"template": {"spec": {"nodeSelector": _LONG_TEXTS}}}},
            id="node selector of a Job's pods",
        ),
    ],
)
def test_child_with_much_text_is_malformed_and_takes_no_memory(
    as_: type[Object], parts: dict[str, Any]
) -> None:
    event, held_bytes = _held(as_, parts)
    assert isinstance(event, MalformedEvent)
    assert "bytes of spec, status: use at most" in event.object.error
    assert held_bytes < 50_000


def test_workload_with_much_text_in_its_owners_is_malformed_and_takes_no_memory() -> None:
    event, held_bytes = _held(Workload, {"metadata": {"ownerReferences": _LONG_OWNERS}})
    assert isinstance(event, MalformedEvent)
    assert "bytes of ownerReferences: use at most" in event.object.error
    assert held_bytes < 50_000


def test_workload_of_a_thousand_pods_is_well_formed() -> None:
    uid = "0" * 36
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "name": f"mnist-worker-{n}", "uid": uid}
        for n in range(MAX_ITEMS)
    ]
    event, _ = _held(Workload, {"metadata": {"ownerReferences": pods}})
    assert isinstance(event, ObjectEvent)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"labels": _LONG_TEXTS}, id="labels"),
        pytest.param({"finalizers": list(_LONG_TEXTS)}, id="finalizers"),
    ],
)
def test_unused_metadata_of_a_workload_takes_no_memory(metadata: dict[str, Any]) -> None:
    event, held_bytes = _held(Workload, {"metadata": metadata})
    assert isinstance(event, ObjectEvent)
    assert held_bytes < 50_000


@pytest.mark.parametrize(
    ("as_", "kept"),
    [
        pytest.param(Pod, "dlctl.dev/placement-hash", id="pod"),
        pytest.param(Service, "", id="service"),
        pytest.param(BatchJob, "", id="Job"),
        pytest.param(Workload, "", id="Workload"),
        pytest.param(DependentObject, "dlctl.dev/applied-hash", id="dependent"),
    ],
)
def test_annotations_of_users_take_no_memory_in_children(as_: type[Object], kept: str) -> None:
    own = {kept: "h"} if kept else {}
    annotations = {"of/a-user": "x" * 250_000, "dlctl.dev/avoided-nodes": "x" * 250_000, **own}
    event, held_bytes = _held(as_, {"metadata": {"annotations": annotations}})
    assert isinstance(event, ObjectEvent)
    assert (event.object.metadata.annotations or {}) == own
    assert held_bytes < 50_000


def _held(as_: type[Object], parts: dict[str, Any]) -> tuple[object, int]:
    """Return the event of an object, as it is stored, and the memory that it takes."""
    metadata = {"name": "a", "namespace": "ns", "uid": "u", **parts.get("metadata", {})}
    wire = {"type": "ADDED", "object": {**parts, "metadata": metadata}}
    line, decoder, interner = msgspec.json.encode(wire), EventDecoder(as_), Interner()
    with no_garbage_collection():
        tracemalloc.start()
        try:
            event = decoder.decode(line)
            if isinstance(event, ObjectEvent):
                event = ObjectEvent(event.type, event.object.for_store(interner))
            held_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    return event, held_bytes


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_lists_of_large_objects_are_reduced_as_they_arrive(
    server: ScriptedServer, *, is_streamed: bool
) -> None:
    note = {"of/a-user": "x" * 250_000}
    pods = [pod(f"pod-{number}", annotations=note) for number in range(60)]
    if is_streamed:
        ended = bookmark(13, INITIAL_END)
        server.streams += [watched(*(added(one) for one in pods), ended, then="hold")]
    else:
        pages = [pods[start : start + 5] for start in range(0, len(pods), 5)]
        tokens = [*map(str, range(len(pages) - 1)), ""]
        server.lists += map(lambda page, token: listed(*page, continue_=token), pages, tokens)
    tracemalloc.start()
    try:
        async with watching(server) as watch:
            assert len(watch.names) == len(pods)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < len(pods) * 250_000 / 2
