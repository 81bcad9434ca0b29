"""What the controller keeps in memory of finished jobs."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, PODS, UID, owner_reference
from dlctl.api.objects.jobs import MAX_STORED_BYTES
from dlctl.dialects.kind import Kind
from tests.builders import kind_of, mxjob, template
from tests.integration.kubeflow import job_of
from tests.integration.stored_jobs import stored_bytes, with_large_template
from tests.support.harness import StartCluster

# As much as stores keep of a job that has not finished.
LARGE = "x" * (MAX_STORED_BYTES - 10_000)
FORMS = [
    pytest.param(kind_of(), mxjob(), id="a list"),
    pytest.param(
        kind_of("kubeflow.org/v1", "PyTorchJob"), job_of("PyTorchJob", {"Master": 1}), id="a map"
    ),
]


@pytest.mark.parametrize(("kind", "manifest"), FORMS)
async def test_spec_of_a_finished_job_is_dropped_but_its_policies_apply(
    kind: Kind, manifest: JSON, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[kind]) as cluster:
        running = cluster.start()
        await cluster.submit(with_large_template(manifest, LARGE), {})
        await cluster.ended()
        await cluster.settled()
        assert stored_bytes(running, cluster, kind) < 500
        before = cluster.status()

        await running.kill()
        running = cluster.start()
        await cluster.settled()
        assert stored_bytes(running, cluster, kind) < 500
        assert cluster.status() == before

        policy = {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 5}}}
        await cluster.user.patch(kind.resource, cluster.key(), policy)
        await cluster.until(lambda: not cluster.objects(kind.resource))


async def test_spec_of_an_invalid_job_is_dropped_without_changing_it(
    start_cluster: StartCluster,
) -> None:
    manifest = with_large_template(mxjob(), LARGE)
    manifest["spec"]["terminationPolicy"] = {"chief": {"replicaName": "WORKER", "replicaIndex": 7}}
    async with start_cluster(kinds=[kind_of()]) as cluster:
        running = cluster.start()
        await cluster.submit(manifest)
        await cluster.until(lambda: cluster.condition("Failed"))
        await cluster.settled()
        before = cluster.status(), cluster.events()
        running.reconcile(kind_of())
        await cluster.settled()
        assert stored_bytes(running, cluster, kind_of()) < 500
        assert (cluster.status(), cluster.events()) == before


async def test_terminated_pod_of_a_job_of_another_controller_is_not_kept(
    start_cluster: StartCluster,
) -> None:
    kind = kind_of("kubeflow.org/v1", "PyTorchJob")
    async with start_cluster(kinds=[kind]) as cluster:
        running = cluster.start()
        policy = {"managedBy": "kueue.x-k8s.io/multikueue"}
        job = await cluster.submit(job_of("PyTorchJob", {"Master": 1}, run_policy=policy))
        owner = owner_reference(kind.resource, name="linear", uid=UID(job["metadata"]["uid"]))
        labels = {MANAGED_BY_LABEL: MANAGED_BY}
        metadata = {"name": "linear-more", "labels": labels, "ownerReferences": [owner]}
        pod = {**template("pytorch"), "metadata": metadata}
        await cluster.user.create(PODS, cluster.namespace, pod)
        done = {"status": {"phase": "Succeeded"}}
        await cluster.user.patch(PODS, cluster.key("linear-more"), done, subresource="status")
        await cluster.settled()
        assert not running.manager._parts.informers.terminated_pods._by_job
