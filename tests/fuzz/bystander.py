"""A controller with hostile objects, and another user's job.

Time is simulated, so waiting costs nothing, and a busy loop becomes visible.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs
import looptime

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, PODS
from dlctl.kube.errors import ApiError, UnexpectedResponseError
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.builders import KINDS, kind_of, manifest, template, training_job
from tests.fuzz.objects import CrdVersion
from tests.support.harness import ClusterHarness, start_cluster
from tests.support.outcomes import Evicted, Exit, Outcome
from tests.support.typed_clients import undecodable_spec, undecodable_status

HOSTILE: Final = "hostile"
BYSTANDER: Final = "bystander"
_OUTCOMES: Final[Mapping[str, Sequence[Outcome]]] = {
    "worker-0": [Exit(137), Exit(0)],
    "worker-1": [Evicted(), Exit(0)],
}
_TABLES: Final = (table_of(PODS), table_of(kind_of("kubeflow.org/v1", "PyTorchJob").resource))
# How long the writes are counted after all has settled.
OBSERVED_S: Final = 600.0
# A job that waits is tried again every ten seconds or later, by one write and its event and status.
MAX_WRITES_EACH: Final = 3 * OBSERVED_S / 10


@attrs.frozen
class BystanderReport:
    """The remaining objects of the bystander, and the writes for all others."""

    # The events of the bystander and its pods, in order.
    changes: Sequence[str]
    conditions: Sequence[tuple[str, str, str]]
    events: Counter[str]
    # Objects accepted by the server, by kind and version.
    stored: Counter[str]
    # Writes of the controller after everything had settled.
    writes: Counter[tuple[str, str]]
    # Objects that Kubeflow's typed clients cannot decode, which hide their whole kind.
    undecodable: Sequence[str]


def run_bystander(objects: Sequence[tuple[CrdVersion, JSON]], *, of_each: int) -> BystanderReport:
    """Run a controller with the first objects of each form that the server takes.

    :raises BaseException: whatever has ended the controller.
    """
    loop = looptime.new_event_loop(noop_cycles=8)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(_run_bystander(objects, of_each))


async def _run_bystander(
    objects: Sequence[tuple[CrdVersion, JSON]], of_each: int
) -> BystanderReport:
    async with start_cluster() as cluster:
        happened = _ChangeRecorder()
        cluster.server.storage.observers.append(happened)
        # Long enough for all hostile objects to exist while it runs.
        cluster.node.run_s = 60.0
        await cluster.user.create(NAMESPACES, "", {"metadata": {"name": HOSTILE}})
        cluster.start()
        await _create(cluster, _scaled())
        half = len(objects) // 2
        stored = await _store(cluster, objects[:half], of_each // 2)
        job = training_job("PyTorchJob", BYSTANDER, Master=1, Worker=2)
        for spec in job["spec"]["pytorchReplicaSpecs"].values():
            spec["restartPolicy"] = "ExitCode"
            spec["template"]["spec"]["restartPolicy"] = "Never"
        await cluster.submit(job, _OUTCOMES)
        stored += await _store(cluster, objects[half:], of_each - of_each // 2)
        await cluster.ended(BYSTANDER)
        await asyncio.sleep(OBSERVED_S)
        before = _write_counts(cluster)
        await asyncio.sleep(OBSERVED_S)
        status = cluster.status(BYSTANDER)
        return BystanderReport(
            happened.lines,
            [(c["type"], c["status"], c["reason"]) for c in status["conditions"]],
            Counter(cluster.events(BYSTANDER)),
            stored,
            _write_counts(cluster) - before,
            list(_undecodable(cluster)),
        )


@attrs.define(eq=False)
class _ChangeRecorder:
    lines: list[str] = attrs.field(factory=list)

    def __call__(self, change: StorageEvent) -> None:
        stored = change.new or change.old
        assert stored is not None
        if change.table not in _TABLES or not stored.key.name.startswith(BYSTANDER):
            return
        if change.old is None or change.new is None:
            what = "there" if change.old is None else "gone"
            self.lines.append(f"{stored.key.name} {what}")


async def _store(
    cluster: ClusterHarness, objects: Sequence[tuple[CrdVersion, JSON]], of_each: int
) -> Counter[str]:
    stored: Counter[str] = Counter()
    for number, (form, body) in enumerate(objects):
        if stored[str(form)] >= of_each:
            continue
        metadata = {**body["metadata"], "namespace": HOSTILE, "name": f"h{number}"}
        stored[str(form)] += await _create(cluster, {**body, "metadata": metadata}, form)
    return stored


async def _create(cluster: ClusterHarness, body: JSON, form: CrdVersion | None = None) -> bool:
    """Return whether the server accepts an object; it may reject any, but must respond."""
    if form is None:
        resource = kind_of(body["apiVersion"], body["kind"]).resource
    else:
        resource = form.resource
    metadata = {k: v for k, v in body["metadata"].items() if k not in _SERVERS_OWN}
    try:
        await cluster.user.create(resource, HOSTILE, {**body, "metadata": metadata})
    except ApiError as error:
        if error.code not in range(400, 500):
            raise
        return False
    except UnexpectedResponseError:
        # It is stored, but its answer has more brackets than a client examines.
        return True
    return True


_SERVERS_OWN: Final = ("uid", "generation", "creationTimestamp")


def _scaled() -> JSON:
    """Return an elastic job for the scalers."""
    each = {"replicas": 2, "template": template("worker")}
    specs = {"launcher": {"replicas": 1, "template": template("launcher")}, "worker": each}
    api_version = "kai.alibabacloud.com/v1alpha1"
    job = manifest(api_version, "TrainingJob", {"etReplicaSpecs": specs}, name="a")
    return {**job, "metadata": {"name": "a", "namespace": HOSTILE}}


def _undecodable(cluster: ClusterHarness) -> Iterator[str]:
    """Yield the stored objects of Kubeflow's kinds that break a typed list."""
    for kind in KINDS:
        if kind.resource.group != "kubeflow.org":
            continue
        for stored in cluster.server.storage.objects(kind.resource, HOSTILE):
            job = stored.decoded(kind.resource)
            found = [undecodable_status(job.get("status") or {})]
            if (name := kind.resource.kind) in ("TFJob", "MXJob"):
                found.append(undecodable_spec(job["spec"], name))  # type: ignore[arg-type]
            yield from (f"{kind.resource.kind}: {why}" for why in found if why)


def _write_counts(cluster: ClusterHarness) -> Counter[tuple[str, str]]:
    return cluster.history.writes()
