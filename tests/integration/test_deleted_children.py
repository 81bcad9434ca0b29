"""Children that others delete or change again and again: created once more, but not in a loop."""

import itertools
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, CONFIG_MAPS, PODS, SERVICES, Resource
from dlctl.api.objects.pod_groups import (
    COSCHEDULING_POD_GROUPS,
    VOLCANO_POD_GROUPS,
    pod_group_resource,
)
from dlctl.api.objects.pods import Pod
from dlctl.cli.jobs.explanation import explain
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.dialects.kind import Kind
from dlctl.kube.errors import NotFoundError
from dlctl.options import Options
from tests.builders import kind_of
from tests.integration.kubeflow import job_of
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING, Exit
from tests.support.pod_groups import admit, start_with_gangs
from tests.support.webhooks import add_webhook

pytestmark = pytest.mark.embedded_only("it advances the clock")
PYTORCH: Final = kind_of("kubeflow.org/v1", "PyTorchJob")
MPI: Final = kind_of("kubeflow.org/v2beta1", "MPIJob")
FAST: Final = Options(restart_backoff_s=1.0, restart_backoff_cap_s=2.0)
_SECONDS: Final = 60
# At once, then after 5 s, 10 s, 20 s.
_MAX_CREATED: Final = 6


def pytorch_job(**policy: Any) -> JSON:
    return job_of("PyTorchJob", {"Master": 1, "Worker": 2}, run_policy=policy)


def created(cluster: ClusterHarness, resource: Resource) -> int:
    return cluster.history.writes()["create", resource.group_resource]


@pytest.mark.parametrize(
    ("kind", "job", "resource", "name"),
    [
        pytest.param(PYTORCH, pytorch_job(), SERVICES, "linear-worker-0", id="service"),
        pytest.param(MPI, mpi_job(name="linear"), CONFIG_MAPS, "linear-config", id="dependent"),
        pytest.param(MPI, mpi_job(name="linear"), BATCH_JOBS, "linear-launcher", id="Job"),
    ],
)
async def test_child_that_is_deleted_again_and_again_is_created_with_a_back_off(
    kind: Kind, job: JSON, resource: Resource, name: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[kind]) as cluster:
        cluster.start()
        await cluster.submit(job)
        await cluster.advance(30)
        before = created(cluster, resource)
        for _ in range(2 * _SECONDS):
            try:
                await cluster.user.delete(resource, cluster.key(name), propagation="Background")
            except NotFoundError:
                pass
            await cluster.advance(0.5)
        # The first one has lasted.
        assert 4 <= created(cluster, resource) - before <= _MAX_CREATED
        await cluster.advance(45)
        assert name in [one["metadata"]["name"] for one in cluster.objects(resource)]


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
async def test_launcher_whose_jobs_others_delete_says_so(
    policy: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        cluster.start()
        await cluster.submit(mpi_job(name="linear", launcherCreationPolicy=policy))
        await cluster.until(lambda: cluster.objects(BATCH_JOBS))
        for _ in range(_SECONDS):
            for job in cluster.objects(BATCH_JOBS):
                key = cluster.key(job["metadata"]["name"])
                await cluster.user.delete(BATCH_JOBS, key, propagation="Background")
            await cluster.advance(1)
        text = (
            "launcher-0 (1 of 3 replicas) waits: the last 5 Jobs were deleted or changed by others"
        )
        assert text in cluster.condition("Waiting")


@pytest.mark.parametrize(
    ("kind", "job", "resource", "sentence"),
    [
        pytest.param(
            PYTORCH,
            pytorch_job(),
            SERVICES,
            "Service linear-worker-0 waits: the last 5 Services were deleted or changed by others "
            "soon after the creation: check other controllers and webhooks",
            id="service",
        ),
        pytest.param(
            MPI,
            mpi_job(name="linear"),
            CONFIG_MAPS,
            "ConfigMap linear-config waits: the last 5 ConfigMaps were deleted or changed by "
            "others soon after the creation: check other controllers and webhooks",
            id="dependent",
        ),
    ],
)
async def test_job_whose_services_or_dependents_others_delete_says_so(
    kind: Kind, job: JSON, resource: Resource, sentence: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[kind]) as cluster:
        cluster.start()
        await cluster.submit(job)
        await cluster.until(lambda: len(cluster.pods()) >= 2)
        name = sentence.split()[1]
        for _ in range(_SECONDS):
            with suppress(NotFoundError):
                await cluster.user.delete(resource, cluster.key(name))
            await cluster.advance(1)
        assert cluster.condition("Waiting") == sentence
        pods = [msgspec.convert(pod, Pod) for pod in cluster.objects(PODS)]
        snapshot = JobSnapshot.of(kind, cluster.job())
        assert f"  {sentence}" in explain(snapshot, pods, (), cluster.clock.now())
        await cluster.until(lambda: not cluster.condition("Waiting"))
        await cluster.until(
            lambda: name in [one["metadata"]["name"] for one in cluster.objects(resource)]
        )


async def change_pods(cluster: ClusterHarness, metadata: Mapping[str, Any]) -> None:
    """Change each new pod, as a webhook would."""
    for _ in range(2 * _SECONDS):
        for pod in cluster.pods():
            try:
                await cluster.user.patch(PODS, cluster.key(pod), {"metadata": dict(metadata)})
            except NotFoundError:
                pass
        await cluster.advance(0.5)


async def test_unscheduled_pods_whose_placement_is_changed_are_replaced_with_a_back_off(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[PYTORCH]) as cluster:
        cluster.node.has_room.clear()
        cluster.start()
        await cluster.submit(pytorch_job())
        await cluster.until(lambda: len(cluster.pods()) == 3)
        await change_pods(cluster, {"annotations": {"dlctl.dev/placement-hash": "another"}})
        assert created(cluster, PODS) <= 3 * _MAX_CREATED
        await cluster.until(lambda: "deleted or changed by others" in cluster.condition("Waiting"))


@pytest.mark.parametrize("scheduler", ["volcano", "coscheduler"])
@pytest.mark.parametrize("has_room", [True, False], ids=["room", "no room"])
async def test_dependent_whose_changes_are_undone_is_changed_with_a_back_off(
    scheduler: str, has_room: bool, start_cluster: StartCluster
) -> None:
    numbers = itertools.count()

    def undo(group: JSON) -> None:
        group["metadata"]["annotations"] = {"example.com/number": str(next(numbers))}

    async with start_cluster(kinds=[PYTORCH]) as cluster:
        if not has_room:
            cluster.node.has_room.clear()
        groups = pod_group_resource(scheduler)
        assert groups is not None
        await start_with_gangs(cluster, scheduler)
        add_webhook(cluster, groups, undo)
        await cluster.submit(pytorch_job())
        await cluster.until(lambda: cluster.objects(groups))
        if scheduler == "volcano":
            await admit(cluster)
        await cluster.advance(_SECONDS)
        # The content, and the time of a retry.
        assert cluster.history.writes()["patch", groups.group_resource] <= 2 * _MAX_CREATED


async def test_update_with_a_back_off_does_not_delay_the_pods_of_a_large_job(
    start_cluster: StartCluster,
) -> None:
    numbers = itertools.count()

    def undo(group: JSON) -> None:
        group["metadata"]["annotations"] = {"example.com/number": str(next(numbers))}

    async with start_cluster(kinds=[PYTORCH]) as cluster:
        cluster.node.has_room.clear()
        await start_with_gangs(cluster, "coscheduler")
        add_webhook(cluster, COSCHEDULING_POD_GROUPS, undo)
        # Services and pods of five reconciliations; in the fourth one, the update has to wait.
        await cluster.submit(job_of("PyTorchJob", {"Master": 1, "Worker": 2100}))
        await cluster.advance(1)
        assert len(cluster.pods()) == 2101


async def test_pods_that_are_given_to_an_earlier_attempt_are_replaced_with_a_back_off(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[PYTORCH], options=FAST) as cluster:
        cluster.start()
        outcomes = dict.fromkeys(("master-0", "worker-0"), (KEEPS_RUNNING,))
        job = pytorch_job(failurePolicy={"maxRestarts": 1})
        await cluster.submit(job, {**outcomes, "worker-1": (Exit(3), KEEPS_RUNNING)})
        await cluster.until(lambda: created(cluster, PODS) == 6)
        await change_pods(cluster, {"labels": {"dlctl.dev/restart-attempt": "0"}})
        assert created(cluster, PODS) <= 3 + 3 * _MAX_CREATED


@pytest.mark.parametrize("strategy", ["Recreate", "BlockingRecreate"])
async def test_job_that_restarts_as_a_whole_waits_for_its_own_back_off_alone(
    strategy: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[PYTORCH], options=FAST) as cluster:
        cluster.start()
        outcomes = dict.fromkeys(("master-0", "worker-0"), (KEEPS_RUNNING,))
        job = pytorch_job(failurePolicy={"maxRestarts": 50, "restartStrategy": strategy})
        await cluster.submit(job, {**outcomes, "worker-1": (Exit(3),) * 50})
        await cluster.advance(_SECONDS)
        # A restart and the run before it take less than 4 s.
        assert created(cluster, PODS) >= 3 * _SECONDS / 4
        assert not cluster.condition("Waiting")


async def test_children_that_dlctl_itself_deletes_are_created_again_at_once(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[PYTORCH]) as cluster:
        await start_with_gangs(cluster, "volcano")
        await cluster.submit(pytorch_job())
        for _ in range(4):
            await cluster.advance(1)
            assert cluster.objects(VOLCANO_POD_GROUPS)
            await admit(cluster)
            await cluster.advance(1)
            assert (len(cluster.pods()), len(cluster.services())) == (3, 3)
            for suspended in (True, False):
                patch = {"spec": {"runPolicy": {"suspend": suspended}}}
                await cluster.user.patch(PYTORCH.resource, cluster.key(), patch)
                await cluster.until(lambda: not cluster.pods() and not cluster.services())
