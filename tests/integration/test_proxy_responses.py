"""Responses that are not those of an API server, from a proxy before it."""

from dlctl.local.apiserver.faults import Fault
from tests.builders import mxjob
from tests.support.harness import StartCluster
from tests.support.outcomes import KEEPS_RUNNING

LOGIN = (200, b'{"error":"please log in"}')
REPLICAS = ("scheduler-0", "worker-0", "worker-1")


async def test_job_keeps_running_while_a_proxy_answers_for_its_pods(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.require_embedded("watches last for minutes")
        cluster.start()
        await cluster.submit(mxjob(), {name: [KEEPS_RUNNING] for name in REPLICAS})
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        job, writes = cluster.job(), cluster.history.writes()
        for verb in ("watch", "list"):
            cluster.server.faults.add(Fault(verb=verb, resource="pods", answer=LOGIN, times=2))
        # All watches have ended by then.
        await cluster.advance(700)
        await cluster.settled()
        assert cluster.server.faults.matched
        assert cluster.job() == job
        assert cluster.history.writes() == writes
