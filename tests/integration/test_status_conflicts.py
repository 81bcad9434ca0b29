"""Statuses that are overwritten by another operator, or pruned by an outdated CRD."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, PODS, ObjectKey
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.resources import Strategy
from dlctl.local.apiserver.server import ApiServer
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from dlctl.metrics import Metrics
from dlctl.options import Options
from dlctl.reconcilers.job.crd_check import FIX_COMMAND
from tests.builders import kind_of, training_job
from tests.integration.replicas import created
from tests.support.harness import ClusterHarness, start_cluster
from tests.support.outcomes import KEEPS_RUNNING, Exit, Outcome

pytestmark = pytest.mark.looptime(noop_cycles=8)
KIND: Final = kind_of("kubeflow.org/v1", "TFJob")
CRD: Final = ObjectKey("", KIND.resource.group_resource)
HALF_AN_HOUR_S: Final = 1800.0
RECONCILE_TIMEOUT_S: Final = 10.0
Outcomes = Mapping[str, Sequence[Outcome]]


def job(name: str = "linear", **counts: int) -> JSON:
    wire = training_job("TFJob", name, **(counts or {"Chief": 1, "Worker": 1}))
    for spec in wire["spec"]["tfReplicaSpecs"].values():
        spec["restartPolicy"] = "ExitCode"
    return wire


_UNUSABLE_RESPONSES: Final = pytest.mark.parametrize(
    "trouble",
    [
        pytest.param({"answer": (504, b"<html>gateway timeout</html>")}, id="of a proxy"),
        pytest.param({"answer": (200, b'{"kind":"TF')}, id="truncated"),
        pytest.param({"reset": "after"}, id="lost"),
        pytest.param({"unanswered": True}, id="later than its reconcile waits"),
    ],
)


@asynccontextmanager
async def operator_without_memory(
    cluster: ClusterHarness, name: str = "linear"
) -> AsyncIterator[None]:
    """Simulate a training-operator that also writes each status, without unknown fields."""
    changed = asyncio.Event()

    def notice(change: StorageEvent) -> None:
        if change.table == table_of(KIND.resource):
            changed.set()

    async def overwrite() -> None:
        while True:
            await changed.wait()
            changed.clear()
            await asyncio.sleep(0.05)
            if "dlctl" in cluster.status(name):
                body = {"status": {"dlctl": None}}
                await cluster.user.patch(
                    KIND.resource, cluster.key(name), body, subresource="status"
                )

    cluster.server.storage.observers.append(notice)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(overwrite())
        yield
        task.cancel()


def status_writes(cluster: ClusterHarness) -> int:
    return cluster.history.writes()["patch", "tfjobs/status.kubeflow.org"]


def value(metrics: Metrics, name: str) -> float:
    labels = {"kind": KIND.resource.group_resource}
    return metrics.registry.get_sample_value(name, labels) or 0.0


async def test_status_conflict_with_another_operator_is_reported_and_backs_off() -> None:
    async with start_cluster() as cluster:
        running = cluster.start()
        outcomes: Outcomes = {"chief-0": [KEEPS_RUNNING], "worker-0": [Exit(143)] * 1000}
        await cluster.submit(job(), outcomes, last_replica="chief-0")
        async with operator_without_memory(cluster):
            await asyncio.sleep(HALF_AN_HOUR_S)
            # Without the pause: one per second and more.
            assert status_writes(cluster) < 40
            # The replica's backoff is kept: 10 s, 20 s and so on up to 5 min.
            assert created(cluster, "worker-0") < 15
            assert "run only one operator" in cluster.events()["StatusConflict"]
            assert value(running.manager.metrics, "dlctl_status_conflicts_total") > 3


async def test_status_conflict_of_one_job_does_not_delay_others() -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job(), {"chief-0": [KEEPS_RUNNING]}, last_replica="chief-0")
        async with operator_without_memory(cluster):
            await asyncio.sleep(60)
            await cluster.submit(job("other"), {})
            async with asyncio.timeout(30):
                await cluster.ended("other")


async def test_single_status_of_another_operator_is_no_conflict() -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job(), {"chief-0": [KEEPS_RUNNING]}, last_replica="chief-0")
        await cluster.until(lambda: cluster.phase() == "Running")
        body = {"status": {"dlctl": None}}
        await cluster.user.patch(KIND.resource, cluster.key(), body, subresource="status")
        async with asyncio.timeout(5):
            await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        assert "StatusConflict" not in cluster.events()


@_UNUSABLE_RESPONSES
async def test_own_status_whose_response_is_unusable_is_no_conflict(trouble: JSON) -> None:
    async with start_cluster(options=Options(reconcile_timeout_s=RECONCILE_TIMEOUT_S)) as cluster:
        cluster.start()
        outcomes: Outcomes = {"chief-0": [KEEPS_RUNNING], "worker-0": [Exit(143)] * 3}
        where: JSON = {"verb": "patch", "resource": KIND.resource.group_resource}
        await cluster.submit(job(), outcomes, last_replica="chief-0")
        for _ in range(5):
            cluster.server.faults.add(Fault(**where, user_agent="dlctl", times=1, **trouble))
            await asyncio.sleep(30)
        assert "StatusConflict" not in cluster.events()


@_UNUSABLE_RESPONSES
async def test_status_whose_response_is_unusable_is_reported_once(trouble: JSON) -> None:
    async with start_cluster(options=Options(reconcile_timeout_s=RECONCILE_TIMEOUT_S)) as cluster:
        running = cluster.start()
        where: JSON = {"verb": "patch", "resource": KIND.resource.group_resource}
        await cluster.submit(job(Chief=1), {"chief-0": [KEEPS_RUNNING]}, last_replica="chief-0")
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        cluster.server.faults.add(Fault(**where, user_agent="dlctl", times=1, **trouble))
        [chief] = cluster.objects(PODS)
        await cluster.node.finish(chief["metadata"]["uid"])
        await cluster.ended()
        await cluster.settled()
        assert "TFJobSucceeded" in cluster.events()
        counted = {"job_namespace": "default", "framework": "tensorflow"}
        name = "training_operator_jobs_successful_total"
        assert running.manager.metrics.registry.get_sample_value(name, counted) == 1


async def test_job_continues_when_the_other_operator_has_stopped() -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job(), {"chief-0": [KEEPS_RUNNING]}, last_replica="chief-0")
        async with operator_without_memory(cluster):
            await cluster.until(lambda: "StatusConflict" in cluster.events())
        await cluster.until(lambda: cluster.phase() == "Running")
        chief = next(p for p in cluster.objects(PODS) if "chief" in p["metadata"]["name"])
        await cluster.node.finish(chief["metadata"]["uid"])
        await cluster.ended()


async def replace_status_schema(cluster: ClusterHarness) -> list[JSON]:
    """Install training-operator's CRD, and return the versions of ours."""
    cluster.require_embedded("other tests use the definitions")
    there = await cluster.user.get(CRDS, CRD, dict[str, Any])
    ours = there["spec"]["versions"]
    theirs = [_without_memory(version) for version in ours]
    await cluster.user.patch(CRDS, CRD, {"spec": {"versions": theirs}})
    return list(ours)


def _without_memory(version: JSON) -> JSON:
    schema = version["schema"]["openAPIV3Schema"]
    status = dict(schema["properties"]["status"])
    del status["x-kubernetes-preserve-unknown-fields"]
    status["properties"] = {n: s for n, s in status["properties"].items() if n != "dlctl"}
    schema = {**schema, "properties": {**schema["properties"], "status": status}}
    return {**version, "schema": {"openAPIV3Schema": schema}}


async def test_outdated_crd_is_reported_and_its_jobs_wait_for_an_update() -> None:
    async with start_cluster() as cluster:
        ours = await replace_status_schema(cluster)
        running = cluster.start()
        check = running.manager.readiness_checks()["definition.tfjobs.kubeflow.org"]
        await cluster.submit(job(), {})
        await cluster.submit(job("second"), {})
        await cluster.until(lambda: not check())
        await asyncio.sleep(HALF_AN_HOUR_S)
        assert not check()
        assert not cluster.pods()
        assert FIX_COMMAND in str(cluster.events())
        assert value(running.manager.metrics, "dlctl_crd_outdated") == 1
        # One job is retried each minute.
        assert status_writes(cluster) < 40

        await cluster.user.patch(CRDS, CRD, {"spec": {"versions": ours}})
        async with asyncio.timeout(150):
            await cluster.ended()
            await cluster.ended("second")
        await cluster.until(check)
        assert value(running.manager.metrics, "dlctl_crd_outdated") == 0


@attrs.frozen
class StrippingPolicy:
    """An admission policy that removes dlctl's part of the status of some jobs."""

    strategy: Strategy
    names: set[str]

    def unknown_fields(self, obj: JSON) -> list[str]:
        return self.strategy.unknown_fields(obj)

    def admit_create(self, obj: JSON) -> JSON:
        return self.strategy.admit_create(obj)

    def admit_update(self, old: JSON, new: JSON) -> JSON:
        return self.strategy.admit_update(old, new)

    def admit_status(self, old: JSON, new: JSON) -> JSON:
        admitted = self.strategy.admit_status(old, new)
        if new["metadata"]["name"] in self.names:
            admitted = {**admitted, "status": {**admitted["status"], "dlctl": None}}
            del admitted["status"]["dlctl"]
        return admitted


@pytest.mark.parametrize("is_leaving", [False, True])
async def test_policy_that_strips_statuses_of_some_jobs_does_not_delay_others(
    is_leaving: bool,
) -> None:
    async with start_cluster() as cluster:
        running = cluster.start()
        if is_leaving:
            await cluster.submit(job("leaving"), {"chief-0": [KEEPS_RUNNING]})
            await cluster.until(lambda: cluster.phase("leaving") == "Running")
            kept = {"metadata": {"finalizers": ["example.com/kept"]}}
            await cluster.user.patch(KIND.resource, cluster.key("leaving"), kept)
            await cluster.user.delete(KIND.resource, cluster.key("leaving"))
        await cluster.submit(job("witness"), {"chief-0": [KEEPS_RUNNING]}, last_replica="chief-0")
        await cluster.until(lambda: cluster.phase("witness") == "Running")
        assert isinstance(cluster.server, ApiServer)
        registry, resource = cluster.server.registry, KIND.resource
        served = registry.find(resource.group, resource.version, resource.plural)
        assert served
        stripped = {f"stripped-{i}" for i in range(5)}
        policy = StrippingPolicy(served.strategy, stripped)
        registry.add(attrs.evolve(served, strategy=policy))
        for name in sorted(stripped):
            await cluster.submit(job(name), {})
        await asyncio.sleep(60)
        for count in range(20):
            await cluster.submit(job(f"other-{count}"), {})
            async with asyncio.timeout(4):
                await cluster.ended(f"other-{count}")
            await asyncio.sleep(17)
        assert value(running.manager.metrics, "dlctl_crd_outdated") == 0
        assert "of this job but not of others" in cluster.events("stripped-0")["StatusRejected"]
        policy.names.clear()
        async with asyncio.timeout(600):
            for name in sorted(stripped):
                await cluster.ended(name)


async def test_outdated_crd_of_one_kind_does_not_delay_others() -> None:
    async with start_cluster() as cluster:
        await replace_status_schema(cluster)
        cluster.start()
        await cluster.submit(job(), {})
        await cluster.submit(training_job("PyTorchJob", "other", Master=1), {})
        await cluster.ended("other")
        assert not [pod for pod in cluster.pods() if pod.startswith("linear")]


async def test_downgraded_crd_does_not_change_running_jobs() -> None:
    async with start_cluster() as cluster:
        running = cluster.start()
        outcomes: Outcomes = {"chief-0": [KEEPS_RUNNING], "worker-0": [Exit(143), KEEPS_RUNNING]}
        await cluster.submit(job(), outcomes, last_replica="chief-0")
        await cluster.until(lambda: created(cluster, "worker-0") == 2)
        await cluster.until(lambda: cluster.phase() == "Running")
        ours = await replace_status_schema(cluster)
        pods = cluster.pods()
        body = {"metadata": {"labels": {"x": "y"}}}
        await cluster.user.patch(KIND.resource, cluster.key(), body)
        chief = next(p for p in cluster.objects(PODS) if "chief" in p["metadata"]["name"])
        await cluster.node.finish(chief["metadata"]["uid"])
        check = running.manager.readiness_checks()["definition.tfjobs.kubeflow.org"]
        await cluster.until(lambda: not check())
        assert cluster.pods() == pods
        await cluster.user.patch(CRDS, CRD, {"spec": {"versions": ours}})
        await cluster.ended()
        await cluster.until(check)


async def test_updated_crd_is_noticed_without_status_writes() -> None:
    async with start_cluster() as cluster:
        running = cluster.start()
        await cluster.submit(job("done"), {})
        await cluster.ended("done")
        await cluster.settled()
        ours = await replace_status_schema(cluster)
        await cluster.submit(job(), {})
        check = running.manager.readiness_checks()["definition.tfjobs.kubeflow.org"]
        await cluster.until(lambda: not check())
        await cluster.user.delete(KIND.resource, cluster.key())
        await cluster.user.patch(CRDS, CRD, {"spec": {"versions": ours}})
        running.reconcile(KIND, "done")
        await cluster.until(check)


async def test_kind_without_jobs_is_not_awaited() -> None:
    async with start_cluster() as cluster:
        running = cluster.start()
        await replace_status_schema(cluster)
        await cluster.submit(job(), {})
        check = running.manager.readiness_checks()["definition.tfjobs.kubeflow.org"]
        await cluster.until(lambda: not check())
        await cluster.user.delete(KIND.resource, cluster.key())
        await cluster.until(check)
