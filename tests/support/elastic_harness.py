"""A cluster harness for elastic jobs: fake launchers, and operations on workers.

For an event loop that compacts time, like ``harness``.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, EVENTS, PODS, SERVICES, Resource
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.local.apiserver.server import ApiServer
from dlctl.options import Options
from tests.builders import kind_of
from tests.dialects.et_operator.manifests import GROUP, elastic_job
from tests.support.documented import documented
from tests.support.fake_launcher import FakeLaunchers, LauncherContainer
from tests.support.fake_pods import is_running
from tests.support.harness import ClusterHarness, start_cluster
from tests.support.outcomes import Script

# How many workers a ScaleIn or ScaleOut asks for.
ONE: Final = {"count": 1}
KIND: Final = kind_of(GROUP, "TrainingJob")
JOBS: Final = KIND.resource
_FINISHED: Final = ("ScaleSucceeded", "ScaleFailed")


@attrs.define(eq=False)
class ElasticHarness:
    """A cluster with TrainingJobs; the default job is the one called linear."""

    cluster: ClusterHarness
    launchers: FakeLaunchers

    async def submit(
        self, *, name: str = "linear", script: Script | None = None, **fields: Any
    ) -> JSON:
        return await self.cluster.submit(elastic_job(name=name, **fields), script=script)

    async def running(self, workers: int = 2, name: str = "linear", **fields: Any) -> None:
        """Wait until a job runs with this many workers, all in the host file."""
        worker = {"replicas": workers, **fields.pop("worker", {})}
        await self.submit(name=name, worker=worker, **fields)
        await self.until_running(name)

    async def until_running(self, name: str = "linear") -> None:
        await self.cluster.until(lambda: self.cluster.phase(name) == "Running")

    async def edit(self, patch: Mapping[str, Any], name: str = "linear") -> None:
        await self.cluster.user.patch(JOBS, self.cluster.key(name), patch)

    async def scale_in(self, name: str = "in", job: str = "linear", **spec: Any) -> None:
        await self.scale(SCALE_INS, name, job, spec)

    async def scale_out(self, name: str = "out", job: str = "linear", **spec: Any) -> None:
        await self.scale(SCALE_OUTS, name, job, spec)

    async def scale(self, resource: Resource, name: str, job: str, spec: JSON) -> None:
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name},
            "spec": {"selector": {"name": job}, **spec},
        }
        await self.cluster.user.create(resource, self.cluster.namespace, body)

    def scaler(self, name: str) -> JSON:
        """Return the status of a ScaleIn or ScaleOut."""
        for resource in (SCALE_INS, SCALE_OUTS):
            stored = self.cluster.server.storage.get(resource, self.cluster.key(name))
            if stored is not None:
                return dict(stored.decoded(resource).get("status") or {})
        raise LookupError(name)

    def scaler_conditions(self, name: str) -> list[str]:
        return [condition["type"] for condition in self.scaler(name)["conditions"]]

    async def scaler_result(self, name: str) -> tuple[str, str]:
        """Wait until a ScaleIn or ScaleOut finishes; return its phase and message."""
        await self.cluster.until(lambda: self.scaler(name).get("phase") in _FINISHED)
        last = self.scaler(name)["conditions"][-1]
        assert last["type"] == self.scaler(name)["phase"]
        # The job drops its reference to the scaler a moment later.
        ours = f"/{name}"
        jobs = self.cluster.objects(JOBS)
        names = [job["metadata"]["name"] for job in jobs]
        await self.cluster.until(
            lambda: (
                not any(
                    self.cluster.status(job).get("currentScaler", "").endswith(ours)
                    for job in names
                )
            )
        )
        return last["type"], last["message"]

    def launcher(self, name: str = "linear") -> LauncherContainer:
        return self.launchers.container(name, self.cluster.namespace)

    def members(self, name: str = "linear") -> list[int]:
        """Return the workers that the job should have."""
        return _numbers(self.cluster.status(name).get("targetWorkers"), name)

    def hosts(self, name: str = "linear") -> list[int]:
        return _numbers(self.cluster.status(name).get("currentWorkers"), name)

    def listed(self, name: str = "linear") -> list[int]:
        """Return the workers in the files of the launcher and in the ConfigMap, if they agree."""
        lines = [f"{host}:1\n" for host in self.launcher(name).hosts]
        (config,) = [
            config
            for config in self.cluster.objects(CONFIG_MAPS)
            if config["metadata"]["name"] == f"{name}-config"
        ]
        if config["data"]["hostfile"] != "".join(lines):
            return [-1]
        return _numbers(self.launcher(name).hosts, name)

    def workers(self, name: str = "linear") -> list[int]:
        """Return the running workers."""
        return sorted(int(n.rpartition("-")[2]) for n in self._workers(name) if self.runs(n))

    def left(self, name: str = "linear") -> list[str]:
        """Return the remaining pods and services of workers, whatever their state."""
        return sorted({*self._workers(name), *self._of(SERVICES, name)})

    def runs(self, pod: str) -> bool:
        found = self.pod(pod)
        return is_running(found) and not found["metadata"].get("deletionTimestamp")

    def pod(self, name: str) -> JSON:
        stored = self.cluster.server.storage.get(PODS, self.cluster.key(name))
        return stored.decoded(PODS) if stored else {"metadata": {}}

    def uid(self, pod: str) -> str:
        return str(self.pod(pod)["metadata"].get("uid", ""))

    async def end(self, pod: str, code: int = 0) -> None:
        """Terminate the program in a pod."""
        await self.cluster.node.finish(self.uid(pod), code)

    async def become_ready(self, pod: str) -> None:
        """Report an unready pod as ready."""
        self.cluster.node.unready.discard(pod)
        status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await self.cluster.user.patch(PODS, self.cluster.key(pod), status, subresource="status")

    async def remove(self, pod: str) -> None:
        """Remove a pod at once."""
        await self.cluster.user.delete(PODS, self.cluster.key(pod), grace_period_s=0)

    def condition_statuses(self) -> dict[str, str]:
        """Return the status of each condition of the job by type."""
        return {c["type"]: c["status"] for c in self.cluster.status()["conditions"]}

    def event_messages(self, reason: str) -> list[str]:
        """Return the messages of the events with a reason."""
        found = (e for e in self.cluster.objects(EVENTS) if e["reason"] == reason)
        return [str(event["message"]) for event in found]

    def is_consistent(self, name: str = "linear") -> bool:
        """Return whether members, hosts, files and running pods agree, and nothing is scaling."""
        members = self.members(name)
        status = self.cluster.status(name)
        same = members == self.hosts(name) == self.listed(name) == self.workers(name)
        return same and self.left(name) == _names(members, name) and "currentScaler" not in status

    def _workers(self, name: str) -> Sequence[str]:
        return self._of(PODS, name)

    def _of(self, resource: Resource, name: str) -> Sequence[str]:
        owned = self.cluster.owned(resource, self.cluster.job(name))
        names = (str(obj["metadata"]["name"]) for obj in owned)
        return [each for each in names if each.startswith(f"{name}-worker-")]


def _numbers(names: Sequence[str] | None, job: str) -> list[int]:
    assert all(name.startswith(f"{job}-worker-") for name in names or ())
    return [int(name.rpartition("-")[2]) for name in names or ()]


def _names(workers: Sequence[int], job: str) -> list[str]:
    return sorted(f"{job}-worker-{index}" for index in workers)


@asynccontextmanager
async def start_elastic_cluster(
    options: Options | None = None, *, gently: bool = True
) -> AsyncIterator[ElasticHarness]:
    """Run a cluster with a controller; check at the end that no launcher was harmed.

    A test that harms launchers on purpose has to check for itself.
    """
    async with documented(start_cluster)(kinds=[KIND], options=options) as cluster:
        server = cluster.server
        assert isinstance(server, ApiServer)
        harness = ElasticHarness(cluster, FakeLaunchers(server, cluster.clock))
        cluster.start()
        yield harness
        assert not cluster.history.violations
        assert not gently or harness.launchers.violations == [], harness.launchers.violations
