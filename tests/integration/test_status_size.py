"""The status of a job of which very many replicas have failed stays within what etcd takes."""

import msgspec
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import RestartRecord
from dlctl.dialects.status import restarts_codec
from tests.builders import kind_of, mxjob, training_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING, Evicted, Exit, Outcome

WORKERS = 100
# etcd takes 1.5 MiB, a job has up to 10,000 replicas, and its spec needs room as well.
MAX_BYTES = 100 * WORKERS

pytestmark = pytest.mark.embedded_only("hundreds of pods fail")


def map_form() -> JSON:
    job = training_job("PyTorchJob", Master=1, Worker=WORKERS)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    return job


def list_form() -> JSON:
    return mxjob(group="fioravanzo.org", workers=WORKERS)


def stored_restarts(cluster: ClusterHarness) -> JSON:
    status = cluster.status()
    return dict((status.get("dlctl") or status).get("restarts") or {})


def restarts(cluster: ClusterHarness) -> dict[str, RestartRecord]:
    return restarts_codec.read(stored_restarts(cluster))


async def submit(cluster: ClusterHarness, job: JSON, first: Outcome, *then: Outcome) -> None:
    """Submit a job whose workers all end in the same way; the first of them ends again."""
    outcomes = {f"worker-{number}": [first, KEEPS_RUNNING] for number in range(WORKERS)}
    outcomes |= {"worker-0": [first, *then, KEEPS_RUNNING]}
    chiefs = ("master-0", "scheduler-0")
    cluster.start()
    await cluster.submit(job, {**outcomes, **{chief: [KEEPS_RUNNING] for chief in chiefs}})
    await cluster.until(lambda: len(restarts(cluster)) == WORKERS)


@pytest.mark.parametrize(
    ("job", "outcome"),
    [
        pytest.param(map_form(), Exit(137), id="map form, killed"),
        pytest.param(list_form(), Evicted(), id="list form, evicted"),
    ],
)
async def test_job_whose_workers_all_fail_has_a_small_status(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch, job: JSON, outcome: Outcome
) -> None:
    monkeypatch.setattr(restarts_codec, "MAX_SINGLE", WORKERS - 1)
    async with start_cluster(kinds=[kind_of(job["apiVersion"], job["kind"])]) as cluster:
        await submit(cluster, job, outcome)
        found = cluster.job()
        del found["spec"]
        assert len(msgspec.json.encode(found)) < MAX_BYTES
        # Each of them is restarted once.
        await cluster.settled()
        assert {one.consecutive_ends for one in restarts(cluster).values()} == {1}
        assert {n for m, n in cluster.history.created.items() if m.replica.type == "worker"} == {2}


@pytest.mark.parametrize("job", [map_form(), list_form()], ids=["map form", "list form"])
async def test_status_that_an_earlier_version_has_written_becomes_small(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch, job: JSON
) -> None:
    async with start_cluster(kinds=[kind_of(job["apiVersion"], job["kind"])]) as cluster:
        await submit(cluster, job, Evicted(), Evicted())
        assert len(stored_restarts(cluster)) == WORKERS
        before = restarts(cluster)
        monkeypatch.setattr(restarts_codec, "MAX_SINGLE", WORKERS - 1)
        await cluster.until(lambda: restarts(cluster)["worker-0"].consecutive_ends == 2)
        assert list(stored_restarts(cluster)) == ["worker"]
        after = restarts(cluster)
        del before["worker-0"], after["worker-0"]
        assert after == before
