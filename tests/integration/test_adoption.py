"""Adopting the children of another operator's jobs: requests, and changes meanwhile."""

from collections.abc import Callable
from typing import Final

import attrs
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, PODS
from dlctl.frameworks.kubeflow.torch_elastic import HORIZONTAL_POD_AUTOSCALERS
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.builders import kind_of, renderer_of
from tests.integration.autoscaling import change, elastic, limits
from tests.integration.tfjobs_left_behind import (
    AT_END,
    CREATED,
    RUN,
    RUNNING,
    STOPPED,
    SUCCEEDED,
    labelled,
    left_behind,
    phases,
    tf_job,
    timestamp,
    uids,
)
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE
from tests.support.training_operator import operator_children as children_left

JOBS: Final = 8


def requests(cluster: ClusterHarness, verb: str, resource: str, subresource: str = "") -> int:
    return sum(
        count
        for audited, count in cluster.server.audit.items()
        if audited.user_agent.startswith("dlctl")
        and (audited.verb, audited.resource, audited.subresource) == (verb, resource, subresource)
    )


async def test_adoption_lists_a_namespace_once_and_patches_each_child_once(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        for number in range(JOBS):
            await left_behind(cluster, tf_job(name=f"job-{number}"), CREATED, RUNNING, **RUN)
        children = uids(cluster)
        before = {r: requests(cluster, "list", r) for r in ("pods", "services")}
        cluster.start()
        await cluster.until(lambda: labelled(cluster) == 8 * JOBS)
        await cluster.until(
            lambda: all(cluster.phase(f"job-{number}") == "Running" for number in range(JOBS))
        )
        await cluster.settled()
        assert uids(cluster) == children
        for resource in ("pods", "services"):
            # At most one by the informer, and one by the adoption.
            assert requests(cluster, "list", resource) - before[resource] <= 2
            assert requests(cluster, "patch", resource) == 4 * JOBS
        assert requests(cluster, "patch", "tfjobs.kubeflow.org", "status") == JOBS
        assert cluster.history.writes().total() == (8 + 1) * JOBS


@pytest.mark.embedded_only("it delays a list")
async def test_slow_list_of_a_namespace_delays_no_adoption_in_others(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await left_behind(cluster, tf_job(), CREATED, RUNNING, **RUN)
        await cluster.user.create(NAMESPACES, "", {"metadata": {"name": "quiet"}})
        quiet = attrs.evolve(cluster, namespace="quiet")
        await left_behind(quiet, tf_job(), CREATED, RUNNING, **RUN)
        slow = Fault(verb="list", resource="pods", namespace=cluster.namespace, delay_s=20.0)
        cluster.server.faults.add(slow)
        cluster.start()
        await cluster.until(lambda: cluster.server.faults.matched)
        await cluster.advance(5)
        assert (labelled(cluster), labelled(quiet)) == (0, 8)
        await cluster.until(lambda: labelled(cluster) == 8)


async def test_finished_job_that_keeps_its_pods_is_adopted_without_patching_them(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        stated = (CREATED, STOPPED, SUCCEEDED)
        outcomes = {replica: [DONE] for replica in ("chief-0", "ps-0", "worker-0", "worker-1")}
        done = timestamp(cluster.clock.now())
        await left_behind(
            cluster, tf_job(), *stated, outcomes=outcomes, completionTime=done, **AT_END
        )
        cluster.start()
        await cluster.until(lambda: cluster.phase() == "Done")
        await cluster.settled()
        assert cluster.history.writes().total() == 1


async def all_but_one_adopted(cluster: ClusterHarness) -> None:
    """Adopt a job except linear-worker-1, whose patch is in flight."""
    await left_behind(cluster, tf_job(), CREATED, RUNNING, **RUN)
    late = Fault(verb="patch", resource="pods", name="linear-worker-1", delay_s=5.0)
    cluster.server.faults.add(late)
    cluster.start()
    await cluster.until(lambda: labelled(cluster) == 7)


async def test_pod_deleted_during_adoption_is_recreated(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        await all_but_one_adopted(cluster)
        await cluster.user.delete(PODS, cluster.key("linear-worker-1"), grace_period_s=0)
        await cluster.until(lambda: len(cluster.pods()) == 3)
        await cluster.until(lambda: labelled(cluster) == 8)
        await cluster.until(lambda: phases(cluster) == ["Running"] * 4)


async def test_pod_changed_during_adoption_is_adopted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await all_but_one_adopted(cluster)
        body = {"metadata": {"annotations": {"x": "y"}}}
        await cluster.user.patch(PODS, cluster.key("linear-worker-1"), body)
        await cluster.until(lambda: labelled(cluster) == 8)
        await cluster.settled()
        assert requests(cluster, "list", "pods") <= 2


async def test_missing_child_is_not_mistaken_for_a_missing_job(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(elastic())
        await cluster.until(lambda: limits(cluster) == [(1, 3)])
        await cluster.settled()
        gone = status.not_found(HORIZONTAL_POD_AUTOSCALERS, "linear")
        cluster.server.faults.add(
            Fault(
                verb="patch",
                resource=HORIZONTAL_POD_AUTOSCALERS.group_resource,
                status=gone,
                times=3,
            )
        )
        await change(cluster, {"elasticPolicy": {"maxReplicas": 5}})
        await cluster.until(lambda: limits(cluster) == [(1, 5)])


def at_end(cluster: ClusterHarness) -> JSON:
    succeeded = {
        "type": "Succeeded",
        "status": "True",
        "lastTransitionTime": timestamp(cluster.clock.now()),
    }
    return {"conditions": [succeeded], "completionTime": timestamp(cluster.clock.now())}


def at_rest(cluster: ClusterHarness) -> JSON:
    return {"conditions": [{"type": "Suspended", "status": "True"}]}


def at_work(cluster: ClusterHarness) -> JSON:
    return {"conditions": [{"type": "Running", "status": "True"}]}


@pytest.mark.parametrize(
    ("stated", "policy"),
    [
        pytest.param(at_end, {}, id="ended"),
        pytest.param(at_rest, {"suspend": True}, id="suspended"),
        # Its pods have ended, but its status does not show it.
        pytest.param(at_work, {}, id="ended unobserved"),
    ],
)
async def test_autoscaler_of_another_operator_is_deleted_with_the_run(
    stated: Callable[[ClusterHarness], JSON], policy: JSON, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        kind = kind_of("kubeflow.org/v1", "PyTorchJob")
        manifest = elastic(**policy)
        outcomes = {"worker-0": [DONE], "worker-1": [DONE]}
        job = await cluster.submit(manifest, outcomes, last_replica="worker-0")
        for resource, child in children_left(renderer_of({**manifest, **job})):
            if resource == HORIZONTAL_POD_AUTOSCALERS or stated is at_work:
                await cluster.user.create(resource, cluster.namespace, child)
        if stated is at_work:
            await cluster.until(lambda: phases(cluster) == ["Succeeded"] * 2)
        body = {"status": stated(cluster)}
        await cluster.user.patch(kind.resource, cluster.key(), body, subresource="status")
        await cluster.sync()
        assert cluster.objects(HORIZONTAL_POD_AUTOSCALERS)
        cluster.start()
        await cluster.until(lambda: not cluster.objects(HORIZONTAL_POD_AUTOSCALERS))
