"""Jobs whose specs or annotations are too large to be kept in memory are processed like others."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, PODS
from dlctl.api.objects.jobs import MAX_STORED_BYTES
from dlctl.dialects.failure_policy.reader import ANNOTATION as FAILURE_POLICY
from dlctl.dialects.kind import Kind
from dlctl.dialects.service_annotation import SERVICE_ANNOTATION
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from tests.builders import bare_job, kind_of, mxjob, training_job
from tests.integration.kubeflow import job_of, only
from tests.integration.stored_jobs import stored_bytes, with_large_template
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING

LARGE = "x" * (2 * MAX_STORED_BYTES)
PYTORCH = "kubeflow.org/v1", "PyTorchJob"


def large(manifest: JSON) -> JSON:
    return with_large_template(manifest, LARGE)


def has_large_pod(cluster: ClusterHarness) -> bool:
    pods = (pod["metadata"] for pod in cluster.objects(PODS))
    return any((pod.get("annotations") or {}).get("large") == LARGE for pod in pods)


FORMS = [
    pytest.param(kind_of(), mxjob(), id="a list"),
    pytest.param(kind_of(*PYTORCH), job_of("PyTorchJob", {"Master": 1, "Worker": 1}), id="a map"),
    pytest.param(
        kind_of("kubeflow.org/v1", "MPIJob"),
        job_of("MPIJob", {"Launcher": 1, "Worker": 1}),
        id="managed fields",
    ),
]


@pytest.mark.parametrize(("kind", "manifest"), FORMS)
async def test_job_with_a_large_spec_runs_to_its_end_and_is_not_kept_in_memory(
    kind: Kind, manifest: JSON, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[kind]) as cluster:
        running = cluster.start()
        await cluster.submit(large(manifest), {})
        await cluster.until(lambda: has_large_pod(cluster))
        assert stored_bytes(running, cluster, kind) < 100
        await cluster.ended()
        await cluster.settled()
        assert stored_bytes(running, cluster, kind) < 100
        assert not cluster.history.violations


async def test_large_annotations_count_and_the_others_still_apply(
    start_cluster: StartCluster,
) -> None:
    manifest = job_of("PyTorchJob", {"Master": 1, "Worker": 2})
    manifest["metadata"]["annotations"] = {"large": LARGE, SERVICE_ANNOTATION: "job"}
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        running = cluster.start()
        await cluster.submit(manifest, {"master-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.condition("Running"))
        assert cluster.services() == ["linear"]
        assert stored_bytes(running, cluster, kind_of(*PYTORCH)) < 100


async def test_edits_of_a_large_spec_are_carried_out(start_cluster: StartCluster) -> None:
    kind = kind_of(*PYTORCH)
    manifest = large(job_of("PyTorchJob", {"Master": 1, "Worker": 1}))
    async with start_cluster(kinds=[kind]) as cluster:
        cluster.start()
        keep = {"master-0": [KEEPS_RUNNING], "worker-0": [KEEPS_RUNNING]}
        await cluster.submit(manifest, keep)
        await cluster.until(lambda: cluster.condition("Running"))

        more = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}}}
        await cluster.user.patch(kind.resource, cluster.key(), more)
        await cluster.until(lambda: len(cluster.pods()) == 4)

        suspended: JSON = {"spec": {"runPolicy": {"suspend": True}}}
        await cluster.user.patch(kind.resource, cluster.key(), suspended)
        await cluster.until(lambda: cluster.condition("Suspended") and not cluster.pods())


@pytest.mark.embedded_only("it measures time")
async def test_edited_annotation_of_a_large_job_counts_at_once(start_cluster: StartCluster) -> None:
    kind = kind_of("mpba.fbk.eu/v1", "MXJob")
    manifest = bare_job(scheduler=1, worker=1)
    manifest["metadata"]["annotations"] = {"large": LARGE}
    async with start_cluster(kinds=[kind]) as cluster:
        cluster.start()
        await cluster.submit(manifest, {"scheduler-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        invalid = {"metadata": {"annotations": {FAILURE_POLICY: "{"}}}
        await cluster.user.patch(kind.resource, cluster.key(), invalid)
        edited_at = cluster.clock.monotonic()
        await cluster.until(lambda: cluster.condition("Waiting"))
        assert cluster.clock.monotonic() - edited_at < 1


async def test_job_that_was_small_continues_with_a_large_invalid_spec(
    start_cluster: StartCluster,
) -> None:
    kind = kind_of()
    async with start_cluster(kinds=[kind]) as cluster:
        cluster.start()
        await cluster.submit(mxjob(), {"scheduler-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.phase() == "Running")
        before = sorted(cluster.pods())
        invalid = large(mxjob())
        invalid["spec"]["terminationPolicy"] = {
            "chief": {"replicaName": "WORKER", "replicaIndex": 7}
        }
        await cluster.user.patch(kind.resource, cluster.key(), {"spec": invalid["spec"]})
        await cluster.until(lambda: cluster.condition("Waiting"))
        await cluster.settled()
        assert sorted(cluster.pods()) == before
        assert cluster.phase() == "Running"


@pytest.mark.embedded_only("faults of reads by name alone")
async def test_failed_reads_of_a_large_spec_are_repeated(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        await cluster.settled()
        broken = StatusError(500, "InternalError", "etcdserver: leader changed")
        cluster.server.faults.add(
            Fault(verb="list", resource="pytorchjobs.kubeflow.org", times=3, status=broken)
        )
        await cluster.submit(large(job_of("PyTorchJob", {"Master": 1})), {})
        await cluster.ended()
        assert cluster.server.faults.matched == 3


@pytest.mark.embedded_only("it looks at two namespaces")
async def test_jobs_with_large_specs_hold_up_no_others(start_cluster: StartCluster) -> None:
    kind = kind_of(*PYTORCH)
    async with start_cluster(kinds=[kind]) as cluster:
        await cluster.user.create(NAMESPACES, "", {"metadata": {"name": "crowd"}})
        names = [f"large-{number}" for number in range(30)]
        for name in names:
            job = large(training_job("PyTorchJob", name, Master=1))
            metadata = {"name": name, "namespace": "crowd"}
            await cluster.user.create(kind.resource, "crowd", {**job, "metadata": metadata})
        cluster.start()
        await cluster.submit(large(job_of("PyTorchJob", {"Master": 1})), {"master-0": [DONE]})
        await cluster.ended()
        stored = cluster.server.storage.objects
        await cluster.until(lambda: len(stored(PODS, "crowd")) == len(names))
        assert not cluster.history.violations


@pytest.mark.embedded_only("it slows down the server")
async def test_few_jobs_with_large_specs_are_reconciled_at_the_same_time(
    start_cluster: StartCluster,
) -> None:
    slow = Fault(verb="create", resource="pods", user_agent="dlctl", delay_s=1, times=None)
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.server.faults.add(slow)
        for number in range(6):
            await cluster.submit(large(training_job("PyTorchJob", f"large-{number}", Master=1)))
        [controller] = cluster.start().manager._parts.controllers
        most = 0

        def look() -> bool:
            nonlocal most
            most = max(most, len(controller.queue._processing))
            return len(cluster.pods()) == 6

        await cluster.until(look)
        # The others leave half of the slots to other namespaces.
        assert most == 2
