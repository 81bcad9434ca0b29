"""Why is my job not running: situations as users meet them, each with its sentence.

Each is built on the API server as schedulers, kubelets, webhooks and Kueue would, and ``dlctl why``
must say the same as the condition.
"""

import re
from typing import Final

import attrs
import msgspec
import pytest

from dlctl.api.meta import PODS
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.workloads import WORKLOADS
from dlctl.cli.jobs.explanation import explain
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import kind_of_api_version
from tests.builders import KINDS
from tests.integration.waiting_acts import Situation, condition, pytorch_job
from tests.integration.waiting_kueue_situations import QUOTA, SUSPENDED
from tests.integration.waiting_situations import SITUATIONS
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.pod_groups import start_with_gangs
from tests.support.workloads import create_workload, serve_workloads, write_workload

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


@pytest.mark.parametrize("name", SITUATIONS)
async def test_job_says_what_it_waits_for(start_cluster: StartCluster, name: str) -> None:
    situation = SITUATIONS[name]
    kind = kind_of_api_version(KINDS, situation.job["apiVersion"], situation.job["kind"])
    assert kind is not None
    async with start_cluster(kinds=[kind], options=situation.options) as cluster:
        if situation.embedded:
            cluster.require_embedded(situation.embedded)
        await start(cluster, situation)
        await cluster.submit(situation.job)
        await situation.act(cluster)
        expected = (situation.reason, situation.sentence)
        await cluster.until(lambda: waiting(cluster) == expected)
        stated = cluster.status()["conditions"]
        assert stated[0]["type"] == "Waiting"
        assert stated[-1]["type"] != "Waiting"
        sentence = stated[0]["message"]
        assert f"  {sentence}" in why(cluster, kind)


async def start(cluster: ClusterHarness, situation: Situation) -> None:
    # What pods say is written by the test.
    cluster.node.has_room.clear()
    if situation.kueue:
        await serve_workloads(cluster.user, cluster.namespace)
    if situation.before:
        await situation.before(cluster)
    if situation.gangs:
        await start_with_gangs(cluster, situation.gangs)
    else:
        cluster.start()


def waiting(cluster: ClusterHarness) -> tuple[str, str]:
    """Return reason and message of the condition; messages that come later replace earlier ones."""
    found = cluster.status().get("conditions") or ()
    stated = next((c for c in found if c["type"] == "Waiting"), {"reason": "", "message": ""})
    message = _TIME.sub("TIME", stated["message"]).replace(cluster.namespace, "default")
    return stated["reason"], message


def why(cluster: ClusterHarness, kind: Kind) -> list[str]:
    """Return the lines of ``dlctl why``."""
    pods = [msgspec.convert(pod, Pod) for pod in cluster.objects(PODS)]
    job = JobSnapshot.of(kind, cluster.job())
    return list(explain(job, pods, (), cluster.clock.now()))


def test_table_has_the_situations_that_users_meet() -> None:
    assert len(SITUATIONS) >= 35
    assert len({situation.reason for situation in SITUATIONS.values()}) >= 25


@pytest.mark.embedded_only("it installs an older Kueue, beside which others install the newest")
async def test_kueue_that_is_installed_later_in_an_older_version_is_found(
    start_cluster: StartCluster,
) -> None:
    older = attrs.evolve(WORKLOADS, version="v1beta1")
    job = pytorch_job(SUSPENDED)
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job)
        await cluster.until(lambda: waiting(cluster)[0] == "Suspended")
        await serve_workloads(cluster.user, cluster.namespace, older)
        quota = condition("QuotaReserved", "Pending", QUOTA)
        key = await create_workload(cluster, cluster.job(), [quota], resource=older)
        await cluster.until(lambda: waiting(cluster)[0] == "WaitingForQuota")

        admitted = condition("Admitted", "Admitted", "", "True")
        await write_workload(cluster, key, {"conditions": [admitted]}, older)
        await cluster.until(lambda: waiting(cluster)[0] == "Suspended")
