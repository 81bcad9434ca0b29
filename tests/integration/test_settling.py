"""The harness itself: on a slow cluster it waits for what is about to happen."""

from dlctl.api.meta import PODS
from dlctl.local.apiserver.faults import Fault
from tests.builders import training_job
from tests.integration.kubeflow import (
    forever,
    only,
    phases,
)
from tests.support.fake_pods import is_running
from tests.support.harness import StartCluster
from tests.support.outcomes import DONE

JOB = training_job("JAXJob", Worker=2)
KINDS = only("JAXJob")


async def test_cluster_has_not_settled_while_the_server_is_slow_to_create_a_pod(
    start_cluster: StartCluster,
) -> None:
    slow = Fault(verb="create", resource="pods", user_agent="dlctl", delay_s=4.0, times=None)
    async with start_cluster(kinds=KINDS) as cluster:
        cluster.server.faults.add(slow)
        cluster.start()
        await cluster.submit(JOB, forever("worker-0", "worker-1"))
        await cluster.settled()
        assert len(cluster.pods()) == 2


async def test_cluster_has_not_settled_before_the_controller_has_seen_the_pods(
    start_cluster: StartCluster,
) -> None:
    slow = Fault(verb="watch", resource="pods", user_agent="dlctl", delay_s=3.0)
    async with start_cluster(kinds=KINDS) as cluster:
        cluster.server.faults.add(slow)
        await cluster.submit(JOB, forever("worker-0", "worker-1"))
        cluster.start()
        await cluster.settled()
        assert len(cluster.pods()) == 2


async def test_cluster_has_not_settled_while_a_kubelet_is_about_to_report(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=KINDS) as cluster:
        cluster.node.phase_lag_s = 4.0
        cluster.start()
        await cluster.submit(JOB, {**forever("worker-0"), "worker-1": [DONE]})
        await cluster.until(lambda: [is_running(p) for p in cluster.objects(PODS)] == [True, False])
        await cluster.settled()
        assert phases(cluster) == ["Running", "Succeeded"]
