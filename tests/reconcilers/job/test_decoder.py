"""Decoded jobs are kept while their objects do not change; the result is the same as without."""

import threading
import tracemalloc
from collections.abc import Awaitable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.interning import Interner
from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.objects.jobs import MAX_STORED_BYTES, JobObject
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from dlctl.dialects.service_annotation import SERVICE_ANNOTATION
from dlctl.reconcilers.content_errors import ContentError
from dlctl.reconcilers.job.decoder import JobDecoder
from dlctl.reconcilers.job.decoding import DecodedJob, decode_job
from tests.builders import KINDS, bare_job, job_object, kind_of, manifest, mxjob, training_job
from tests.support.counting_kind import counting


def _training_job(count: int) -> JSON:
    replica = {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}
    specs = {"launcher": replica, "worker": {**replica, "replicas": count}}
    return manifest("kai.alibabacloud.com/v1alpha1", "TrainingJob", {"etReplicaSpecs": specs})


def _jobs(count: int) -> list[JSON]:
    """Return a job of each form, with this number of workers."""
    maps = [
        training_job(kind.resource.kind, Worker=count)
        for kind in KINDS
        if kind.resource.group == "kubeflow.org" and kind.resource.kind != "MPIJob"
    ]
    mpi = training_job("MPIJob", Launcher=1, Worker=count)
    lists = [mxjob(), bare_job(SCHEDULER=1, SERVER=1, WORKER=count)]
    return [*maps, mpi, *lists, _training_job(count)]


FORMS = range(len(_jobs(1)))
RUNNING: JSON = {"phase": "Running", "conditions": [{"type": "Running", "status": "True"}]}
STARTED: list[JSON] = [
    {**RUNNING, "dlctl": {"phase": "Running", "membership": {"members": [3, 5]}, "jobRestarts": n}}
    for n in range(3)
]
STATUSES: list[JSON] = [
    {},
    {"conditions": [{"type": "Created", "status": "True"}], "dlctl": {"phase": "Created"}},
    STARTED[2],
    {"phase": 7, "conditions": "none", "dlctl": []},
    {"currentWorkers": ["linear-worker-4"], "conditions": [{"type": "Running"}]},
]
FIRST: JSON = {"count": 1, "generation": 1, "annotations": None, "labels": None, "status": {}}
VALUES: dict[str, list[Any]] = {
    "count": [-1, 0, 1, 2],
    "generation": [1, 2],
    "annotations": [None, {"a": "b"}, {SERVICE_ANNOTATION: "job"}, {SERVICE_ANNOTATION: "none"}],
    "labels": [None, {"a": "b"}],
    "status": STATUSES,
}
# What differs from one object to the next; mostly the status.
CHANGES = st.lists(
    st.sampled_from([*VALUES, *["status"] * len(VALUES)]).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(VALUES[name]))
    ),
    min_size=1,
    max_size=8,
)


def _object(form: int, values: JSON) -> JSON:
    wire = _jobs(values["count"])[form]
    names = ("generation", "annotations", "labels")
    wire["metadata"] |= {name: values[name] for name in names} | {"uid": "one"}
    return {**wire, "status": values["status"]}


async def _never_read(stored: JobObject) -> JobObject:
    raise AssertionError(stored)


async def _decoded(decoder: JobDecoder, stored: JobObject) -> DecodedJob:
    _, found = await decoder.decode(stored)
    if isinstance(found, ContentError):
        raise found
    return found


async def _decoded_without_cache(kind: Kind, stored: JobObject) -> DecodedJob:
    return decode_job(kind, kind.decode(stored))


async def _values(read: Awaitable[DecodedJob]) -> tuple[Any, ...]:
    try:
        found = await read
    except ContentError as error:
        return (str(error),)
    return found.job, found.obj, found.status, str(found.error)


@pytest.mark.parametrize("form", FORMS)
@given(changes=CHANGES)
async def test_jobs_are_the_same_as_without_a_cache(
    form: int, changes: list[tuple[str, Any]]
) -> None:
    values = list(
        accumulate(changes, lambda old, change: {**old, change[0]: change[1]}, initial=FIRST)
    )
    wires = [_object(form, each) for each in values]
    kind = kind_of(wires[0]["apiVersion"], wires[0]["kind"])
    decoder = JobDecoder(kind, _never_read)
    for wire in wires:
        stored = job_object(wire)
        found = await _values(_decoded(decoder, stored))
        assert found == await _values(_decoded_without_cache(kind, stored))


@pytest.mark.parametrize("form", FORMS)
async def test_a_new_status_does_not_make_the_spec_read_again(form: int) -> None:
    wires = [_object(form, {**FIRST, "status": status}) for status in STARTED]
    kind = counting(kind_of(wires[0]["apiVersion"], wires[0]["kind"]))
    decoder = JobDecoder(kind, _never_read)
    for wire in wires:
        await _decoded(decoder, job_object(wire))
    depends = kind.choose_version is not None or kind.elastic is not None
    assert len(kind.decoded_versions) == (len(wires) if depends else 1)


async def test_specs_that_are_not_stored_are_read_once_from_the_server() -> None:
    wire = training_job("PyTorchJob", Master=1)
    wire["metadata"] |= {"uid": "one", "annotations": {"large": "x" * MAX_STORED_BYTES}}
    whole, reads = job_object(wire), list[JobObject]()

    async def read(stored: JobObject) -> JobObject:
        reads.append(stored)
        return whole

    decoder = JobDecoder(kind_of(wire["apiVersion"], wire["kind"]), read)
    stored = whole.for_store(Interner())
    for _ in range(2):
        found = await _decoded(decoder, stored)
        assert found.job
        assert found.job.annotations == whole.metadata.annotations
    assert reads == [stored]
    # Of its annotations, only the server knows whether they have changed.
    await _decoded(decoder, whole.for_store(Interner()))
    assert len(reads) == 2


async def test_large_annotations_of_many_jobs_are_not_kept() -> None:
    wire = training_job("PyTorchJob", Master=1)
    kind = kind_of(wire["apiVersion"], wire["kind"])
    large = 200 << 10

    async def read(stored: JobObject) -> JobObject:
        metadata = {"uid": stored.metadata.uid, "annotations": {"large": "x" * large}}
        return job_object({**wire, "metadata": {**wire["metadata"], **metadata}})

    decoder = JobDecoder(kind, read)
    tracemalloc.start()
    try:
        for number in range(30):
            whole = await read(job_object({**wire, "metadata": {"uid": str(number)}}))
            assert (await _decoded(decoder, whole.for_store(Interner()))).job
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 5 * large


async def test_large_specs_are_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    real_read = Kind.read

    def read(kind: Kind, obj: DecodedObject) -> Job:
        threads.append(threading.current_thread())
        return real_read(kind, obj)

    monkeypatch.setattr(Kind, "read", read)
    for headers in (1, 5000):
        probe = {"httpGet": {"port": 80, "httpHeaders": [{"name": "a", "value": ""}] * headers}}
        wire = training_job("PyTorchJob", Master=1)
        master = wire["spec"]["pytorchReplicaSpecs"]["Master"]
        master["template"]["spec"]["containers"][0]["readinessProbe"] = probe
        found = await _decoded(
            JobDecoder(kind_of(wire["apiVersion"], wire["kind"]), _never_read), job_object(wire)
        )
        assert found.job is not None
    small, large = threads
    assert small is threading.current_thread()
    assert large is not small
