"""Hostile loads: what one tenant can do to a cluster with a controller in it.

A load fills the server before the controller starts, and continues while quiet jobs run.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import aiohttp
import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, PODS, ObjectKey, Resource
from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.errors import DlctlError
from dlctl.local.apiserver.endpoints.execs import PodExecOptions
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.server import ApiServer
from dlctl.local.apiserver.status import StatusError
from tests.builders import bare_job, kind_of, training_job
from tests.dialects.et_operator.manifests import elastic_job, scale_in
from tests.support.fake_exec import FakeExecSession
from tests.support.fake_launcher import FakeLaunchers, LauncherContainer, Program
from tests.support.harness import ClusterHarness

HOSTILE: Final = "hostile"
_LOOK_S: Final = 0.1
_TRAINING: Final = kind_of("kai.alibabacloud.com/v1alpha1", "TrainingJob").resource
_BARE: Final = kind_of("mpba.fbk.eu/v1", "MXJob").resource
_JAX: Final = kind_of("kubeflow.org/v1", "JAXJob").resource
_TF: Final = kind_of("kubeflow.org/v1", "TFJob").resource
SLOW: Final = "/slow.sh"
# 3 MB/s from each endless launcher.
_CHUNK: Final = "x" * 65_536
_CHUNK_PAUSE_S: Final = 0.02


@attrs.define(eq=False)
class BenchCluster:
    """The cluster, the launchers in it, and where the controller says how it is."""

    cluster: ClusterHarness
    server: ApiServer
    launchers: FakeLaunchers
    metrics_url: str = ""

    def store(self, resource: Resource, namespace: str, obj: JSON, status: Any = None) -> None:
        """Store an object as one from before the controller started."""
        served = self.server.registry.find(resource.group, resource.version, resource.plural)
        assert served is not None
        metadata = {"name": obj["metadata"]["name"], "namespace": namespace}
        self.server.objects.create(served, namespace, {**obj, "metadata": metadata})
        if status is not None:
            key = ObjectKey(namespace, metadata["name"])
            self.server.objects.rewrite(served, key, lambda old: {**old, "status": status})

    def namespace(self, name: str) -> None:
        self.store(NAMESPACES, "", {"metadata": {"name": name}})

    async def until(self, holds: Callable[[], object], within_s: float) -> None:
        """Wait for a condition, up to a limit: a stuck controller is a result, too."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not holds():  # noqa: ASYNC110 - it is looked at, not signalled.
                    await asyncio.sleep(_LOOK_S)

    async def create(self, resource: Resource, namespace: str, obj: JSON) -> None:
        """Create an object; one that is refused at admission does no harm."""
        metadata = {"name": obj["metadata"]["name"]}
        with suppress(DlctlError):
            await self.cluster.user.create(resource, namespace, {**obj, "metadata": metadata})

    def running(self, namespace: str, prefix: str) -> int:
        """Return how many TrainingJobs of a prefix run."""
        found = self.server.storage.objects(_TRAINING, namespace)
        own = (s for s in found if s.key.name.startswith(prefix))
        return sum(_phase(s.decoded(_TRAINING)) == "Running" for s in own)


def _phase(job: JSON) -> str:
    status = job.get("status") or {}
    return str((status.get("dlctl") or {}).get("phase") or status.get("phase"))


class Load:
    """One hostile load; the base class does nothing."""

    name = "nothing"

    async def preload(self, stage: BenchCluster) -> None:
        """Fill the server before the controller starts."""

    async def prepare(self, stage: BenchCluster) -> None:
        """Prepare what needs a running controller."""

    async def run(self, stage: BenchCluster) -> None:
        """Run beside the quiet jobs, until cancelled."""


class InvalidJobs(Load):
    """Jobs without a scheduler, which pass the schema and are refused when read."""

    name = "5,000 invalid jobs"
    count = 5000

    async def preload(self, stage: BenchCluster) -> None:
        for number in range(self.count):
            job = bare_job("MXJob", f"bad-{number}")
            del job["spec"][0]
            stage.store(_BARE, HOSTILE, job)


class SlowScripts(Load):
    """Scripts of ScaleIns that run for an hour, each in the launcher of its own job."""

    name = "200 slow scripts"
    count = 200

    async def prepare(self, stage: BenchCluster) -> None:
        stage.launchers.programs[SLOW] = Program(lasts_s=3600)
        for number in range(self.count):
            await stage.create(_TRAINING, HOSTILE, elastic_job(name=f"slow-{number}"))
        await stage.until(lambda: stage.running(HOSTILE, "slow-") == self.count, 30)
        for number in range(self.count):
            scaler = scale_in(selector={"name": f"slow-{number}"}, script=SLOW, timeout=3600)
            scaler["metadata"]["name"] = f"slow-{number}"
            await stage.create(SCALE_INS, HOSTILE, scaler)
        await stage.until(lambda: len(stage.launchers.runs) >= self.count, 5)


class EndlessLaunchers(FakeLaunchers):
    """Fake launchers; some write endlessly."""

    async def _check_in_use(
        self, container: LauncherContainer, asked: PodExecOptions, session: FakeExecSession
    ) -> int:
        if asked.pod.startswith("endless-"):
            while True:
                session.write_stdout(_CHUNK)
                await asyncio.sleep(_CHUNK_PAUSE_S)
        return await super()._check_in_use(container, asked, session)


class EndlessOutput(Load):
    """Launchers whose answer to a ScaleIn never ends."""

    name = "endless exec output"
    count = 16

    async def prepare(self, stage: BenchCluster) -> None:
        for number in range(self.count):
            await stage.create(_TRAINING, HOSTILE, elastic_job(name=f"endless-{number}"))
        await stage.until(lambda: stage.running(HOSTILE, "endless-") == self.count, 20)
        for number in range(self.count):
            scaler = scale_in(selector={"name": f"endless-{number}"})
            scaler["metadata"]["name"] = f"endless-{number}"
            await stage.create(SCALE_INS, HOSTILE, scaler)


class _WebhookError(StatusError):
    """A refusal with a new message each time."""

    numbers: Iterator[int] = itertools.count()

    def body(self) -> JSON:
        return {**super().body(), "message": f"{self.message}{next(self.numbers)}"}


class ChangingRefusals(Load):
    """Pods refused by a webhook that quotes a request id."""

    name = "changing 403s"
    count = 50

    async def preload(self, stage: BenchCluster) -> None:
        says = 'admission webhook "quota.example.com" denied the request: request '
        refused = _WebhookError(403, "Forbidden", says)
        fault = Fault(verb="create", resource="pods", namespace="hooked", times=None)
        stage.namespace("hooked")
        stage.server.faults.add(attrs.evolve(fault, status=refused))

    async def prepare(self, stage: BenchCluster) -> None:
        for number in range(self.count):
            job = training_job("TFJob", f"hooked-{number}", PS=1, Worker=3)
            await stage.create(_TF, "hooked", job)


class LargeJob(Load):
    """A job of 30,000 replicas, and one of as many as there may be, under a quota of pods."""

    name = "a job of 3 x 10,000, and one of 10,000"
    quota = 300

    async def preload(self, stage: BenchCluster) -> None:
        stage.namespace("large")

    async def prepare(self, stage: BenchCluster) -> None:
        job = training_job("TFJob", "large", PS=10_000, Worker=10_000, Evaluator=10_000)
        await stage.create(_TF, "large", job)
        await stage.create(_JAX, "large", training_job("JAXJob", "largest", Worker=10_000))

    async def run(self, stage: BenchCluster) -> None:
        storage = stage.server.storage
        while len(storage.objects(PODS, "large")) < self.quota:  # noqa: ASYNC110 - as above.
            await asyncio.sleep(_LOOK_S)
        says = 'pods "large" is forbidden: exceeded quota: tenant, requested: pods=1, limited: pods'
        refused = StatusError(403, "Forbidden", says)
        fault = Fault(verb="create", resource="pods", namespace="large", times=None)
        stage.server.faults.add(attrs.evolve(fault, status=refused))


class FinishedScalers(Load):
    """A job with a long history of scaling, reconciled five times a second."""

    name = "5,000 finished scalers"
    count = 5000

    async def preload(self, stage: BenchCluster) -> None:
        done = {"type": "ScaleSucceeded", "status": "True", "reason": "x", "message": "y"}
        status = {"phase": "ScaleSucceeded", "conditions": [done]}
        for number in range(self.count):
            scaler = scale_in(selector={"name": "scaled"})
            scaler["metadata"]["name"] = f"done-{number}"
            stage.store(SCALE_INS, HOSTILE, scaler, status)

    async def prepare(self, stage: BenchCluster) -> None:
        await stage.create(_TRAINING, HOSTILE, elastic_job(name="scaled"))
        await stage.until(lambda: stage.running(HOSTILE, "scaled"), 10)

    async def run(self, stage: BenchCluster) -> None:
        for number in itertools.count():
            patch = {"metadata": {"annotations": {"touched": str(number)}}}
            await stage.cluster.user.patch(_TRAINING, ObjectKey(HOSTILE, "scaled"), patch)
            await asyncio.sleep(0.2)


class Flips(Load):
    """Jobs that are suspended and resumed all the time, so that their pods come and go."""

    name = "20 jobs that are suspended and resumed"
    count = 20
    a_second = 5

    async def prepare(self, stage: BenchCluster) -> None:
        for number in range(self.count):
            job = training_job("TFJob", f"flips-{number}", PS=1, Worker=3)
            await stage.create(_TF, HOSTILE, job)

    async def run(self, stage: BenchCluster) -> None:
        for suspended in itertools.cycle((True, False)):
            patch = {"spec": {"runPolicy": {"suspend": suspended}}}
            for number in range(self.count):
                await stage.cluster.user.patch(_TF, ObjectKey(HOSTILE, f"flips-{number}"), patch)
                await asyncio.sleep(1 / (self.a_second * self.count))


def _largest_job(name: str, workers: int) -> JSON:
    """Return a job that is as large as the API server takes, and so are its pods."""
    job = training_job("TFJob", name, Worker=workers)
    template = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    template["spec"]["containers"][0]["args"] = ["x" * 1_300_000]
    return job


class LargeSpecs(Load):
    """Unfinished jobs that are as large as the API server takes."""

    name = "300 jobs of 1.3 MB"
    count = 300

    async def preload(self, stage: BenchCluster) -> None:
        for number in range(self.count):
            stage.store(_TF, HOSTILE, _largest_job(f"wide-{number}", 1))


class LargePods(Load):
    """Jobs whose pods are as large as the API server takes."""

    name = "4 jobs of 60 replicas of 1.3 MB"
    count = 4
    replicas = 60

    async def preload(self, stage: BenchCluster) -> None:
        for number in range(self.count):
            stage.store(_TF, HOSTILE, _largest_job(f"fat-{number}", self.replicas))


class Scrapes(Load):
    """A client that reads the metrics without pause, of jobs in many namespaces."""

    name = "50 scrapes a second"
    namespaces = 100
    a_second = 50

    async def preload(self, stage: BenchCluster) -> None:
        for number in range(self.namespaces):
            name = f"many-{number}"
            stage.namespace(name)
            job = bare_job("MXJob", "bad")
            del job["spec"][0]
            stage.store(_BARE, name, job)

    async def run(self, stage: BenchCluster) -> None:
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            # Bounds the requests in flight.
            slots = asyncio.Semaphore(self.a_second)

            async def scrape() -> None:
                async with slots:
                    with suppress(aiohttp.ClientError):
                        async with session.get(stage.metrics_url) as response:
                            await response.read()

            while True:
                group.create_task(scrape())
                await asyncio.sleep(1 / self.a_second)


LOADS: Final[tuple[Load, ...]] = (
    InvalidJobs(),
    SlowScripts(),
    EndlessOutput(),
    ChangingRefusals(),
    LargeJob(),
    FinishedScalers(),
    Flips(),
    LargeSpecs(),
    LargePods(),
    Scrapes(),
)
