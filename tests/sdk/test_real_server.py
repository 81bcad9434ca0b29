"""kubeflow-training as its users call it, on a real API server."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest
from kubeflow.training import TrainingClient

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from tests.builders import kind_of
from tests.sdk.jobs import IMAGE, KINDS, client_of, job, manifest, master, suspend
from tests.support.outcomes import KEEPS_RUNNING, Outcome, script_of
from tests.support.real_harness import KUBECONFIG, RealClusterHarness, start_real_cluster

pytestmark = [pytest.mark.real, pytest.mark.sdk, pytest.mark.timeout(300)]
WAIT_S = 120


def until(probe: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def waits_for(client: TrainingClient, name: str, *conditions: str) -> Any:
    return client.wait_for_job_conditions(
        name, expected_conditions=set(conditions), wait_timeout=WAIT_S, polling_interval=0.1
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_job_is_followed_through_a_restart_to_its_end(kind: str) -> None:
    async with start_real_cluster(kinds=[kind_of("kubeflow.org/v1", kind)]) as cluster:
        assert isinstance(cluster, RealClusterHarness)
        cluster.start()
        client = client_of(kind, KUBECONFIG, cluster.namespace)
        made = job(client, scheduled_by_script(cluster, kind, KEEPS_RUNNING))
        program = MasterProgram(cluster, kind, asyncio.get_running_loop())
        await asyncio.to_thread(follow, client, kind, made, program)
        assert not cluster.history.violations


@attrs.frozen
class MasterProgram:
    """The program of the master, for a thread beside the cluster's: the client polls."""

    cluster: RealClusterHarness
    kind: str
    loop: asyncio.AbstractEventLoop

    def end(self, code: int) -> None:
        """End it; the next one does not start before :meth:`restart`."""
        asyncio.run_coroutine_threadsafe(self._end(code), self.loop).result(WAIT_S)

    def restart(self) -> None:
        self.loop.call_soon_threadsafe(self.cluster.node.has_room.set)

    async def _end(self, code: int) -> None:
        self.cluster.node.has_room.clear()
        [pod] = (p for p in self.cluster.objects(PODS) if p["metadata"]["name"] == self._pod_name)
        await self.cluster.node.finish(pod["metadata"]["uid"], code)

    @property
    def _pod_name(self) -> str:
        return master(self.kind, "a")


def scheduled_by_script(cluster: RealClusterHarness, kind: str, *outcomes: Outcome) -> JSON:
    """Return a job for simulated nodes, where a script sets the outcome of the chief."""
    wire = manifest(kind, "a", ["true"], policy="ExitCode")
    first = master(kind, "a").removeprefix("a-")
    chief = first if first[-1].isdecimal() else f"{first}-0"
    script = script_of(wire, {chief: outcomes}, last_replica=chief)
    cluster.node.scripts[cluster.key("a")] = script
    return cluster.kubelet.with_node_selector(wire)


def follow(client: TrainingClient, kind: str, made: Any, program: MasterProgram) -> None:
    client.create_job(made)
    assert client.is_job_created("a") or waits_for(client, "a", "Created")
    waits_for(client, "a", "Running")
    assert len(client.get_job_pod_names("a")) == sum(KINDS[kind].values())
    assert client.get_job_pod_names("a", is_master=True) == [master(kind, "a")]
    program.end(137)
    waits_for(client, "a", "Restarting")
    program.restart()
    waits_for(client, "a", "Running")
    program.end(0)
    ended = waits_for(client, "a", "Succeeded")
    assert ended.status.completion_time
    assert client.is_job_succeeded("a")
    assert not client.is_job_running("a")
    assert not client.is_job_failed("a")
    assert [one.metadata.name for one in client.list_jobs()] == ["a"]
    client.delete_job("a")
    until(lambda: not client.get_job_pods("a"))


@pytest.mark.parametrize("kind", KINDS)
async def test_job_is_patched_by_the_sdk(kind: str) -> None:
    async with start_real_cluster(kinds=[kind_of("kubeflow.org/v1", kind)]) as cluster:
        assert isinstance(cluster, RealClusterHarness)
        cluster.start()
        client = client_of(kind, KUBECONFIG, cluster.namespace)
        made = job(client, scheduled_by_script(cluster, kind, KEEPS_RUNNING))
        await asyncio.to_thread(suspend_and_resume, client, made)


def suspend_and_resume(client: TrainingClient, made: Any) -> None:
    client.create_job(made)
    waits_for(client, "a", "Running")
    for suspended in (True, False):
        until(partial(suspend, client, "a", suspended))
        if suspended:
            until(lambda: not client.get_job_pods("a"))
        else:
            waits_for(client, "a", "Running")
    client.delete_job("a")


@pytest.mark.parametrize(
    ("kind", "counts", "pods"),
    [
        pytest.param("PyTorchJob", {"num_workers": 2}, ["master-0", "worker-0"], id="PyTorchJob"),
        pytest.param(
            "TFJob",
            {"num_workers": 1, "num_chief_replicas": 1, "num_ps_replicas": 1},
            ["chief-0", "ps-0", "worker-0"],
            id="TFJob",
        ),
    ],
)
async def test_job_is_created_from_parameters(
    kind: str, counts: dict[str, int], pods: list[str]
) -> None:
    async with start_real_cluster(kinds=[kind_of("kubeflow.org/v1", kind)]) as cluster:
        cluster.start()
        client = client_of(kind, KUBECONFIG, cluster.namespace)
        names = await asyncio.to_thread(make, client, counts)
        assert names == [f"a-{pod}" for pod in pods]


def make(client: TrainingClient, counts: dict[str, int]) -> list[str]:
    env = {"RATE": "0.1"}
    resources = {"cpu": "10m", "memory": "10Mi"}
    client.create_job(
        name="a", base_image=IMAGE, env_vars=env, resources_per_worker=resources, **counts
    )
    waits_for(client, "a", "Running")
    until(lambda: len(client.get_job_pods("a")) == sum(counts.values()))
    return sorted(client.get_job_pod_names("a"))
