"""Too large jobs are rejected before any creation, with a message that names the fix."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, NAMESPACES, PODS
from dlctl.controller.object_writer import MAX_PARALLEL
from dlctl.local.apiserver.faults import Fault
from tests.builders import kind_of, manifest, template, training_job
from tests.support.harness import StartCluster, start_cluster
from tests.support.outcomes import KEEPS_RUNNING

RECONCILES = "controller_runtime_reconcile_time_seconds_count"
SLOW_PODS = Fault(verb="create", resource="pods", user_agent="dlctl", delay_s=1, times=None)


def listed(kind: str, **counts: int) -> dict[str, Any]:
    entries = [
        {"tfReplicaType": type_.upper(), "replicas": count, "template": template("tensorflow")}
        for type_, count in counts.items()
    ]
    return manifest("kubeflow.org/v1alpha1", kind, {"replicaSpecs": entries})


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(training_job("TFJob", PS=3000, Worker=3000), id="map"),
        pytest.param(listed("TFJob", master=1, ps=3000, worker=3000), id="list"),
    ],
)
async def test_job_with_too_large_pods_is_rejected_before_any_child_is_created(
    wire: dict[str, Any],
) -> None:
    async with start_cluster(kinds=[kind_of("kubeflow.org/v1", "TFJob")]) as cluster:
        cluster.start()
        await cluster.submit(wire)
        await cluster.until(lambda: cluster.phase() == "Failed")
        said = str(cluster.status())
        assert "the variable TF_CONFIG, which lists all of them, has " in said
        assert "lower replicas, or give the job a shorter name" in said
        assert not cluster.history.created
        assert not cluster.services()


async def test_large_job_is_created_in_slices_without_delaying_others() -> None:
    large = training_job("JAXJob", "large", Worker=600)
    small = training_job("JAXJob", "small", Worker=1)
    async with start_cluster(kinds=[kind_of("kubeflow.org/v1", "JAXJob")]) as cluster:
        cluster.start()
        await cluster.submit(large)
        await cluster.until(lambda: len(cluster.history.created) >= 1)
        await cluster.submit(small)
        await cluster.until(lambda: "small-worker-0" in cluster.pods())
        created = len(cluster.history.created)
        await cluster.until(lambda: len(cluster.history.created) == 601)
    assert created < 601
    assert not cluster.history.violations


async def test_jobs_of_one_namespace_do_not_delay_those_of_another() -> None:
    kind = kind_of("kubeflow.org/v1", "JAXJob")
    async with start_cluster(kinds=[kind]) as cluster:
        await cluster.user.create(NAMESPACES, "", {"metadata": {"name": "crowd"}})
        for number in range(20):
            one = training_job("JAXJob", f"one-{number}", Worker=1)
            one["metadata"]["namespace"] = "crowd"
            await cluster.user.create(kind.resource, "crowd", one)
        await cluster.submit(training_job("JAXJob", "small", Worker=1))
        for controller in cluster.start().manager._parts.controllers:
            controller.max_concurrent_reconciles = 1
        await cluster.until(lambda: "small-worker-0" in cluster.pods())
        others = await cluster.user.list(PODS, JSON, namespace="crowd")
        assert len(others.items) < 5


async def test_few_large_jobs_are_reconciled_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dlctl.reconcilers.large_jobs.slots._SLOTS_FOR_REPLICAS", 4)
    kind = kind_of("kubeflow.org/v1", "JAXJob")
    async with start_cluster(kinds=[kind]) as cluster:
        cluster.server.faults.add(SLOW_PODS)
        for number in range(4):
            await cluster.submit(training_job("JAXJob", f"large-{number}", Worker=65))
        [controller] = cluster.start().manager._parts.controllers
        await cluster.until(lambda: len(cluster.history.created) > 4)
        await cluster.advance(3)
        # The others leave their workers, and half of the slots, to other namespaces.
        assert len(controller.queue._processing) == 2
        await cluster.until(lambda: len(cluster.pods()) == 4 * 65)


@pytest.mark.embedded_only("it slows down the server")
async def test_job_that_is_suspended_gets_no_more_of_its_pods(start_cluster: StartCluster) -> None:
    kind = kind_of("kubeflow.org/v1", "JAXJob")
    async with start_cluster(kinds=[kind]) as cluster:

        async def suspend(value: bool) -> None:
            patch = {"spec": {"runPolicy": {"suspend": value}}}
            await cluster.user.patch(kind.resource, cluster.key(), patch)

        cluster.server.faults.add(SLOW_PODS)
        cluster.start()
        await cluster.submit(training_job("JAXJob", Worker=300))
        await cluster.until(lambda: cluster.history.created)
        await suspend(True)
        created = len(cluster.history.created)
        await cluster.until(lambda: "Suspended" in str(cluster.status()))
        await cluster.settled()
        # Those that were on their way.
        assert len(cluster.history.created) <= created + MAX_PARALLEL
        assert not cluster.pods()
        await suspend(False)
        await cluster.until(lambda: len(cluster.pods()) == 300)


@pytest.mark.embedded_only("it slows down the server")
async def test_job_is_reported_to_run_before_all_of_its_pods_exist(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[kind_of("kubeflow.org/v1", "PyTorchJob")]) as cluster:
        cluster.server.faults.add(SLOW_PODS)
        cluster.start()
        job = training_job("PyTorchJob", Master=1, Worker=300)
        await cluster.submit(job, {"master-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.condition("Running"))
        assert len(cluster.history.created) < 301
        await cluster.until(lambda: len(cluster.pods()) == 301)
    assert not cluster.history.violations


@pytest.mark.embedded_only("it counts reconciles")
async def test_running_pod_of_somebody_else_is_not_planned_for_in_a_loop(
    start_cluster: StartCluster,
) -> None:
    """It has the name of the pod whose start would end a slice."""
    async with start_cluster(kinds=[kind_of("kubeflow.org/v1", "JAXJob")]) as cluster:
        registry = cluster.start().manager.metrics.registry
        name, labels = "linear-worker-0", {"controller": "jaxjobs.kubeflow.org"}
        metadata = {"name": name, "labels": {MANAGED_BY_LABEL: MANAGED_BY}}
        await cluster.user.create(
            PODS, cluster.namespace, {"metadata": metadata, **template("jax")}
        )
        running = {"status": {"phase": "Running"}}
        await cluster.user.patch(PODS, cluster.key(name), running, subresource="status")
        await cluster.submit(training_job("JAXJob", Worker=100))
        await cluster.until(lambda: f"{name} is taken" in cluster.condition("Waiting"))
        before = registry.get_sample_value(RECONCILES, labels) or 0
        await cluster.advance(60)
        assert (registry.get_sample_value(RECONCILES, labels) or 0) - before < 30
