"""Jobs that are changed or deleted while they run, and CRDs that come and go."""

import logging
from collections.abc import Mapping, Sequence

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, PODS, SERVICES, ObjectKey
from dlctl.local.apiserver.faults import Fault
from tests.builders import KINDS, bare_job, kind_of, mxjob
from tests.integration.replicas import replicas
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING, Outcome, script_of

KIND = kind_of()
STEADY: Mapping[str, Sequence[Outcome]] = {
    "scheduler-0": [KEEPS_RUNNING],
    "worker-0": [KEEPS_RUNNING],
    "worker-1": [KEEPS_RUNNING],
}


async def running(cluster: ClusterHarness, manifest: JSON | None = None) -> JSON:
    """Submit an endless job, and wait until all its pods run."""
    job = await cluster.submit(manifest or mxjob(), STEADY)
    await cluster.until(lambda: cluster.status().get("phase") == "Running")
    await cluster.settled()
    return job


def created_pods(cluster: ClusterHarness) -> int:
    """Return how many pods the controller has created so far."""
    return sum(
        count
        for entry, count in cluster.server.audit.items()
        if (entry.verb, entry.resource) == ("create", "pods") and entry.user_agent == "dlctl"
    )


async def test_children_are_deleted_with_their_job(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await running(cluster)
        await cluster.user.delete(KIND.resource, cluster.key())
        await cluster.until(lambda: not cluster.pods() and not cluster.services())
        made = sum(cluster.history.created.values())
        await cluster.settled()
        assert not cluster.pods()
        assert sum(cluster.history.created.values()) == made == 4


@pytest.mark.embedded_only("it silences a watch")
@pytest.mark.parametrize(
    ("propagation", "recreated"),
    [
        pytest.param("Background", False, id="deleted"),
        pytest.param("Background", True, id="created again"),
        pytest.param("Foreground", False, id="deleted after its children"),
    ],
)
async def test_children_of_a_job_whose_deletion_is_not_seen_are_not_created_repeatedly(
    start_cluster: StartCluster, propagation: str, recreated: bool
) -> None:
    async with start_cluster() as cluster:
        cluster.node.has_room.clear()
        first = cluster.start()
        await cluster.submit(mxjob())
        await cluster.until(cluster.pods)
        # Not for long: what it waits for would be written into its status.
        await cluster.advance(5)
        await first.kill()
        jobs = KIND.resource.group_resource
        silent = Fault(verb="watch", resource=jobs, silent=True, times=None)
        cluster.server.faults.add(silent)
        cluster.start()
        await cluster.advance(5)

        count = len(cluster.pods())
        created = created_pods(cluster)
        # In foreground deletion the job stays until this pod is gone.
        held = ObjectKey("default", cluster.pods()[0])
        if propagation == "Foreground":
            await cluster.user.patch(PODS, held, {"metadata": {"finalizers": ["a.b/c"]}})
        await cluster.user.delete(KIND.resource, cluster.key(), propagation=propagation)
        if recreated:
            await cluster.submit(mxjob())
        await cluster.advance(60)
        # Once, before the server is asked about the job.
        assert created_pods(cluster) <= created + count
        cluster.server.faults.clear()
        if propagation == "Foreground":
            await cluster.user.patch(PODS, held, {"metadata": {"finalizers": None}})
        await cluster.advance(600)
        assert len(cluster.pods()) == (count if recreated else 0)


async def test_job_recreated_under_its_name_is_another_job(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        old = await running(cluster)
        await cluster.user.delete(KIND.resource, cluster.key())
        new = await cluster.submit(mxjob(cleanupPodPolicy="None"), {})
        assert old["metadata"]["uid"] != new["metadata"]["uid"]
        assert (await cluster.ended())["state"] == "Succeeded"
        await cluster.settled()
        # Old children are left to the garbage collector, which takes its time.
        await cluster.until(lambda: len(cluster.pods()) == len(cluster.owned(PODS, new)))
        assert not cluster.history.violations


async def test_recreated_job_waits_for_the_names_of_the_old_children(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await running(cluster, mxjob(RuntimeId="same"))
        await cluster.user.delete(KIND.resource, cluster.key())
        new = await cluster.submit(mxjob(RuntimeId="same", cleanupPodPolicy="None"), {})
        assert (await cluster.ended())["state"] == "Succeeded"
        await cluster.settled()
        await cluster.until(lambda: len(cluster.owned(PODS, new)) == len(cluster.pods()) == 4)


@pytest.mark.embedded_only("it advances the clock")
async def test_recreated_job_starts_as_soon_as_the_old_pods_are_gone(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await running(cluster, mxjob(RuntimeId="same"))
        old = [ObjectKey("default", name) for name in cluster.pods()]
        for pod in old:
            await cluster.user.patch(PODS, pod, {"metadata": {"finalizers": ["a.b/c"]}})
        await cluster.user.delete(KIND.resource, cluster.key())
        new = await cluster.submit(mxjob(RuntimeId="same"))
        # The next attempt is then more than a minute away.
        await cluster.advance(120)
        assert not cluster.owned(PODS, new)

        for pod in old:
            await cluster.user.patch(PODS, pod, {"metadata": {"finalizers": None}})
        await cluster.advance(3)
        assert len(cluster.owned(PODS, new)) == len(old)


async def test_scale_down_deletes_surplus_pods(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        job = await running(cluster)
        specs = mxjob(workers=1)["spec"]["replicaSpecs"]
        await cluster.user.patch(KIND.resource, cluster.key(), {"spec": {"replicaSpecs": specs}})
        await cluster.until(lambda: len(cluster.pods()) == 3)
        await cluster.settled()
        assert replicas(cluster.pods()) == ["scheduler-0", "server-0", "worker-0"]
        assert cluster.status()["phase"] == "Running"
        assert len(cluster.owned(SERVICES, job)) == 1


@pytest.mark.embedded_only("other tests need the definitions that it does without")
async def test_crd_can_be_installed_after_the_controller_has_started(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(installed=()) as cluster:
        controller = cluster.start()
        await cluster.settled()
        assert controller.manager.synced, "a rollout would wait forever"
        await cluster.install(KIND)
        await cluster.submit(mxjob(), {})
        assert (await cluster.ended())["state"] == "Succeeded"


@pytest.mark.embedded_only("other tests need the definitions that it does without")
async def test_kind_without_its_crd_does_not_block_others(
    start_cluster: StartCluster,
) -> None:
    others = [kind for kind in KINDS if kind.resource.kind != "TFJob"]
    async with start_cluster(installed=others) as cluster:
        cluster.start()
        await cluster.submit(mxjob(), {})
        assert (await cluster.ended())["state"] == "Succeeded"


@pytest.mark.embedded_only("other tests need the definitions that it does without")
async def test_crd_deleted_under_a_running_job_causes_no_error_loop(
    caplog: pytest.LogCaptureFixture, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await running(cluster)
        await cluster.user.delete(CRDS, ObjectKey("", KIND.resource.group_resource))
        await cluster.until(lambda: not cluster.pods())
        await cluster.settled()
        caplog.clear()
        requests = sum(cluster.server.audit.values())
        await cluster.advance(300)
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
        # Listing the kind is retried with backoff.
        warned = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert len(warned) < 10
        assert sum(cluster.server.audit.values()) - requests < 20

        await cluster.submit(bare_job("TFJob", "other", ps=1, worker=1), {})
        assert (await cluster.ended("other"))["state"] == "Succeeded"


@pytest.mark.embedded_only("other tests need the definitions that it does without")
async def test_jobs_of_a_reinstalled_crd_are_reconciled(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await running(cluster)
        await cluster.user.delete(CRDS, ObjectKey("", KIND.resource.group_resource))
        await cluster.until(lambda: not cluster.pods())
        await cluster.install(KIND)
        await cluster.submit(mxjob(), script=script_of(mxjob()))
        assert (await cluster.ended())["state"] == "Succeeded"
