"""Jobs with large specs, and what the controller's store keeps of them."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dlctl.api.json_types import JSON
from dlctl.dialects.kind import Kind
from dlctl.reconcilers.large_jobs.threads import read_in_thread
from tests.support.harness import ClusterHarness
from tests.support.running_controller import RunningController


def with_large_template(manifest: JSON, text: str) -> JSON:
    """Return a job with this text as an annotation in its first template."""
    specs = next(v for name, v in manifest["spec"].items() if name.lower().endswith("replicaspecs"))
    entry = specs[0] if isinstance(specs, list) else next(iter(specs.values()))
    entry["template"] = {**entry["template"], "metadata": {"annotations": {"large": text}}}
    return manifest


def stored_bytes(running: RunningController, cluster: ClusterHarness, kind: Kind) -> int:
    """Return the size of what the controller's store keeps of the author's part of a job."""
    informers = running.manager._parts.informers.required
    (store,) = [one.store for one in informers if one.resource == kind.resource]
    job = store.get(cluster.key())
    assert job is not None
    texts = (job.metadata.annotations or {}).values()
    return len(bytes(job.spec)) + sum(map(len, texts))


@contextmanager
def busy_reader(tasks: asyncio.TaskGroup, namespace: str) -> Iterator[None]:
    """Occupy the thread that reads large specs for the duration of the block."""
    end = threading.Event()
    tasks.create_task(read_in_thread(namespace, end.wait))
    try:
        yield
    finally:
        end.set()
