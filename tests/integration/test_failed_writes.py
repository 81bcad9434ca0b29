"""Children of which the server fails to create or delete one: what happened to the others stays."""

from collections.abc import Collection
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, EVENTS, PODS, SERVICES, Resource
from dlctl.dialects.kind import Kind
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from dlctl.options import Options
from tests.builders import kind_of
from tests.integration.kubeflow import job_of
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import ClusterHarness, StartCluster

pytestmark = pytest.mark.embedded_only("it answers with faults")
PYTORCH: Final = kind_of("kubeflow.org/v1", "PyTorchJob")
MPI: Final = kind_of("kubeflow.org/v2beta1", "MPIJob")
NAME: Final = "linear"
FAILED: Final = StatusError(500, "InternalError", "etcdserver: leader changed")


def job() -> JSON:
    return job_of("PyTorchJob", {"Master": 1, "Worker": 2})


def named_by_events(cluster: ClusterHarness, reason: str, names: Collection[str]) -> list[str]:
    """Return those of the names that are in the messages of events with a reason."""
    messages = [e["message"] for e in cluster.objects(EVENTS) if e["reason"] == reason]
    named = {name for message in messages for name in message.partition(": ")[2].split(", ")}
    return sorted(named.intersection(names))


@pytest.mark.parametrize(("resource", "kind"), [(PODS, "Pod"), (SERVICES, "Service")])
async def test_event_names_each_child_though_the_creation_of_another_one_failed(
    resource: Resource, kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[PYTORCH]) as cluster:
        cluster.server.faults.add(Fault(verb="create", resource=resource.plural, status=FAILED))
        cluster.start()
        await cluster.submit(job())
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.settled()
        assert cluster.server.faults.matched == 1
        names = [child["metadata"]["name"] for child in cluster.objects(resource)]
        assert len(names) == 3
        assert named_by_events(cluster, f"SuccessfulCreate{kind}", names) == sorted(names)


async def test_event_names_each_pod_that_is_created_before_the_reconcile_times_out(
    start_cluster: StartCluster,
) -> None:
    options = Options(reconcile_timeout_s=20.0)
    async with start_cluster(kinds=[PYTORCH], options=options) as cluster:
        cluster.server.faults.add(Fault(verb="create", resource="pods", delay_s=60.0))
        cluster.start()
        await cluster.submit(job())
        await cluster.until(lambda: cluster.condition("Running"))
        names = cluster.pods()
        assert named_by_events(cluster, "SuccessfulCreatePod", names) == sorted(names)


async def test_event_names_each_pod_though_the_deletion_of_another_one_failed(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[PYTORCH]) as cluster:
        cluster.start()
        await cluster.submit(job())
        await cluster.until(lambda: cluster.condition("Running"))
        names = cluster.pods()
        fault = Fault(verb="delete", resource="pods", user_agent="dlctl", status=FAILED)
        cluster.server.faults.add(fault)
        patch = {"spec": {"runPolicy": {"suspend": True}}}
        await cluster.user.patch(PYTORCH.resource, cluster.key(), patch)
        await cluster.until(lambda: not cluster.pods())
        await cluster.settled()
        assert cluster.server.faults.matched
        assert named_by_events(cluster, "SuccessfulDeletePod", names) == sorted(names)


@pytest.mark.parametrize(
    ("kind", "manifest", "resource", "name", "failing"),
    [
        pytest.param(PYTORCH, job(), PODS, f"{NAME}-worker-0", PODS, id="pod"),
        pytest.param(PYTORCH, job(), SERVICES, f"{NAME}-worker-0", SERVICES, id="service"),
        pytest.param(MPI, mpi_job(name=NAME), CONFIG_MAPS, f"{NAME}-config", SERVICES, id="other"),
    ],
)
async def test_child_is_held_back_if_others_delete_it_though_another_one_had_failed(
    kind: Kind,
    manifest: JSON,
    resource: Resource,
    name: str,
    failing: Resource,
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[kind]) as cluster:
        cluster.server.faults.add(Fault(verb="create", resource=failing.plural, status=FAILED))
        cluster.start()
        await cluster.submit(manifest)
        await cluster.until(lambda: len(cluster.pods()) >= 2)
        for is_held in (False, True):
            await cluster.user.delete(resource, cluster.key(name), grace_period_s=0)
            await cluster.advance(1)
            names = [one["metadata"]["name"] for one in cluster.objects(resource)]
            assert (name not in names) == is_held
