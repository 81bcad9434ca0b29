"""Responses that are not those of an API server, from a proxy before it."""

import pytest

from dlctl.local.apiserver.faults import Fault
from tests.builders import mxjob
from tests.support.harness import StartCluster
from tests.support.outcomes import KEEPS_RUNNING

LOGIN = (200, b'{"error":"please log in"}')
SUCCESS = (200, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}')
UNVERSIONED = (200, b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"a"}}')
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


@pytest.mark.parametrize("answer", [LOGIN, SUCCESS, UNVERSIONED], ids=["login", "Status", "none"])
@pytest.mark.parametrize(
    ("verb", "resource"),
    [("create", "pods"), ("create", "services"), ("patch", "mxjobs.kubeflow.org")],
)
async def test_write_with_an_answer_of_a_proxy_is_neither_lost_nor_repeated(
    start_cluster: StartCluster, verb: str, resource: str, answer: tuple[int, bytes]
) -> None:
    async with start_cluster() as cluster:
        cluster.require_embedded("the answers are those of the embedded server")
        fault = Fault(user_agent="dlctl", verb=verb, resource=resource, answer=answer, times=2)
        cluster.server.faults.add(fault)
        running = cluster.start()
        await cluster.submit(mxjob(), {})
        await cluster.ended()
        await cluster.settled()
        assert cluster.server.faults.matched
        assert cluster.history.writes()["create", "pods"] == 4
        assert {"Created", "Running", "Succeeded"} <= {
            condition["type"] for condition in cluster.status()["conditions"]
        }
        registry = running.manager.metrics.registry
        panics = "controller_runtime_reconcile_panics_total"
        assert registry.get_sample_value(panics, {"controller": "mxjobs.kubeflow.org"}) == 0
