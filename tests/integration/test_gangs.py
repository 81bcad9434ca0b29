"""Gang scheduling: PodGroups follow their jobs, and pods wait for them."""

from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import (
    CONFIG_MAPS,
    CRDS,
    MANAGED_BY_LABEL,
    PODS,
    ObjectKey,
    Resource,
    owner_reference,
)
from dlctl.api.objects.dependents import GANG_RETRIED_AT
from dlctl.api.objects.pod_groups import COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from tests.builders import kind_of, mxjob, renderer_of, training_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.pod_groups import admit, install_with_gangs, serve_pod_groups, start_with_gangs

VOLCANO: Final = "volcano"
# The scheduler of the test's pods, whatever the gang's scheduler is.
SCHEDULER: Final = "default-scheduler"


def job_of(kind: str = "JAXJob", /, **counts: int) -> JSON:
    job = training_job(kind, **(counts or {"Worker": 2}))
    (specs,) = job["spec"].values()
    for entry in specs.values():
        entry["template"]["spec"]["schedulerName"] = SCHEDULER
    return job


def groups(cluster: ClusterHarness, resource: Resource = VOLCANO_POD_GROUPS) -> list[JSON]:
    return cluster.objects(resource)


def pods(cluster: ClusterHarness) -> list[JSON]:
    return cluster.objects(PODS)


def written(cluster: ClusterHarness, *verbs: str) -> int:
    """Return the number of PodGroup requests of this verb."""
    return sum(
        count
        for entry, count in cluster.server.audit.items()
        if entry.user_agent.startswith("dlctl")
        and entry.resource.startswith("podgroups")
        and entry.verb in verbs
    )


def writes(cluster: ClusterHarness) -> int:
    return sum(
        count
        for entry, count in cluster.server.audit.items()
        if entry.user_agent.startswith("dlctl")
        and entry.verb in ("create", "update", "patch", "delete")
    )


async def change(cluster: ClusterHarness, spec: JSON, kind: str = "JAXJob") -> None:
    jobs = kind_of("kubeflow.org/v1", kind).resource
    await cluster.user.patch(jobs, cluster.key(), {"spec": spec})


async def test_pods_are_created_once_volcano_has_admitted_their_gang(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, VOLCANO)
        await cluster.submit(job_of())
        await cluster.until(lambda: groups(cluster))
        await cluster.settled()
        assert groups(cluster)[0]["spec"] == {"minMember": 2, "queue": "default"}
        assert cluster.pods() == []
        before = writes(cluster)

        await admit(cluster, phase="Pending")
        await cluster.settled()
        assert (cluster.pods(), writes(cluster)) == ([], before)

        await admit(cluster)
        await cluster.until(lambda: cluster.condition("Running"))
        annotations = [pod["metadata"]["annotations"] for pod in pods(cluster)]
        assert {own["volcano.sh/task-spec"] for own in annotations} == {"worker"}
        # Set by the user in the template.
        await cluster.until(lambda: "SetPodTemplateSchedulerName" in cluster.events())


async def test_pod_group_is_deleted_on_suspension_and_recreated_on_resumption(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, VOLCANO)
        await cluster.submit(job_of())
        await cluster.until(lambda: groups(cluster))
        await admit(cluster)
        await cluster.until(lambda: cluster.condition("Running"))

        await change(cluster, {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: not groups(cluster) and not cluster.pods())

        await change(cluster, {"runPolicy": {"suspend": False}})
        await cluster.until(lambda: groups(cluster))
        await cluster.settled()
        assert cluster.pods() == []
        await admit(cluster)
        await cluster.until(lambda: cluster.condition("Running"))


async def test_pod_group_is_deleted_when_the_job_ends(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, "coscheduler")
        await cluster.submit(job_of())
        await cluster.until(lambda: groups(cluster, COSCHEDULING_POD_GROUPS))
        await change(cluster, {"runPolicy": {"activeDeadlineSeconds": 1}})
        await cluster.ended()
        await cluster.until(lambda: not groups(cluster, COSCHEDULING_POD_GROUPS))


async def test_pod_group_is_only_patched_when_its_job_changes(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, VOLCANO)
        job = job_of()
        job["spec"]["runPolicy"] = {"schedulingPolicy": {"minResources": {"cpu": 1, "gpu": 1}}}
        await cluster.submit(job)
        await cluster.until(lambda: groups(cluster))
        others = {"spec": {"queue": "of-the-namespace", "minTaskMember": {"worker": 1}}}
        await cluster.user.patch(VOLCANO_POD_GROUPS, cluster.key(), others)
        await admit(cluster)
        await cluster.until(lambda: cluster.condition("Running"))
        await admit(cluster, phase="Running")
        await cluster.settled()
        assert (written(cluster, "create"), written(cluster, "patch", "update", "get")) == (1, 0)

        await change(cluster, {"runPolicy": {"schedulingPolicy": {"minResources": {"gpu": None}}}})
        await change(cluster, {"jaxReplicaSpecs": {"Worker": {"replicas": 3}}})
        wanted = {"minMember": 3, "minResources": {"cpu": "1"}, **others["spec"]}
        await cluster.until(lambda: groups(cluster)[0]["spec"] == wanted)
        await cluster.until(lambda: len(cluster.pods()) == 3)
        await cluster.settled()
        assert written(cluster, "patch") <= 2
        assert written(cluster, "create", "update", "get", "delete") == 1


async def test_pod_group_annotations_follow_those_of_the_job(
    start_cluster: StartCluster,
) -> None:
    jobs = kind_of("kubeflow.org/v1", "JAXJob").resource

    def stated(cluster: ClusterHarness) -> JSON:
        (group,) = groups(cluster)
        return {n: v for n, v in group["metadata"]["annotations"].items() if "dlctl" not in n}

    async with start_cluster() as cluster:
        await start_with_gangs(cluster, VOLCANO)
        await cluster.submit(job_of())
        await cluster.until(lambda: groups(cluster))
        theirs = {"volcano.sh/theirs": "c"}
        await cluster.user.patch(
            VOLCANO_POD_GROUPS, cluster.key(), {"metadata": {"annotations": theirs}}
        )
        for own in ({"a": "1", "b": "1"}, {"a": "2", "b": None}, {"a": None}):
            await cluster.user.patch(jobs, cluster.key(), {"metadata": {"annotations": own}})
            await cluster.settled()
            kept = {name: value for name, value in own.items() if value}
            assert stated(cluster) == {**kept, **theirs}
        assert written(cluster, "patch") == 3
        await cluster.settled()
        assert written(cluster, "patch") == 3


async def test_pods_for_the_scheduler_plugin_are_created_at_once(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, "coscheduler")
        job = job_of()
        job["spec"]["runPolicy"] = {"schedulingPolicy": {"scheduleTimeoutSeconds": 30}}
        await cluster.submit(job)
        await cluster.until(lambda: cluster.condition("Running"))
        (group,) = groups(cluster, COSCHEDULING_POD_GROUPS)
        assert group["spec"] == {"minMember": 2, "scheduleTimeoutSeconds": 30}
        labels = [pod["metadata"]["labels"] for pod in pods(cluster)]
        assert {own["scheduling.x-k8s.io/pod-group"] for own in labels} == {"linear"}


@pytest.mark.parametrize("scheduler", [VOLCANO, "coscheduler"])
async def test_launcher_is_scheduled_with_its_workers(
    scheduler: str, start_cluster: StartCluster
) -> None:
    resource = VOLCANO_POD_GROUPS if scheduler == VOLCANO else COSCHEDULING_POD_GROUPS
    job = job_of("MPIJob", Launcher=1, Worker=2)
    for entry in job["spec"]["mpiReplicaSpecs"].values():
        (container,) = entry["template"]["spec"]["containers"]
        container["resources"] = {"requests": {"cpu": 2}}
    async with start_cluster() as cluster:
        # Without launchers two such jobs fit into 8 CPU: each starts as a whole or not at all.
        cluster.require_embedded("there, a scheduler of its own finds room for pods")
        cluster.node.has_room.clear()
        await start_with_gangs(cluster, scheduler)
        await cluster.submit(job)
        await cluster.until(lambda: groups(cluster, resource))
        (group,) = groups(cluster, resource)
        assert group["spec"]["minMember"] == 3
        assert group["spec"]["minResources"] == {"cpu": "6"}
        if scheduler == VOLCANO:
            await admit(cluster)
        # All members exist, so that the scheduler can place them, although no worker runs.
        await cluster.until(lambda: len(cluster.pods()) == 3)
        await cluster.advance(20)
        assert not any(pod["spec"].get("schedulingGates") for pod in pods(cluster))
        # The launcher's hosts are complete from the start.
        configs = cluster.objects(CONFIG_MAPS)
        (config,) = [c for c in configs if c["metadata"]["name"] == "linear-config"]
        assert config["data"]["discover_hosts.sh"].count("linear-worker-") == 2

        cluster.node.has_room.set()
        await cluster.until(lambda: cluster.condition("Running"))


async def test_launcher_is_in_its_jobs_queue(start_cluster: StartCluster) -> None:
    job = job_of("MPIJob", Launcher=1, Worker=2)
    job["spec"]["runPolicy"] = {"schedulingPolicy": {"queue": "research"}}
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, VOLCANO)
        await cluster.submit(job)
        await cluster.until(lambda: groups(cluster))
        await admit(cluster)
        await cluster.until(lambda: len(cluster.pods()) == 3)
        own = [pod["metadata"]["annotations"] for pod in pods(cluster)]
        assert [a["scheduling.k8s.io/group-name"] for a in own] == ["linear"] * 3
        assert groups(cluster)[0]["spec"]["queue"] == "research"
        # training-operator's spelling: scripts look for it.
        await cluster.until(lambda: "SettedPodTemplateSchedulerName" in cluster.events())


async def test_list_form_jobs_get_pod_groups_too(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, VOLCANO)
        await cluster.submit(mxjob(workers=1, schedulerName=SCHEDULER))
        await cluster.until(lambda: groups(cluster))
        await admit(cluster)
        await cluster.until(lambda: cluster.condition("Running"))
        assert groups(cluster)[0]["spec"]["minMember"] == 3


async def leave(cluster: ClusterHarness, job: JSON) -> list[str]:
    """Create a running job as left by training-operator; return the UIDs of its pods."""
    created = await cluster.submit(job)
    resource = kind_of("kubeflow.org/v1", "JAXJob").resource
    stated = {"type": "Created", "status": "True", "reason": "JAXJobCreated"}
    status = {"status": {"conditions": [stated]}}
    await cluster.user.patch(resource, cluster.key(), status, subresource="status")
    owner = owner_reference(resource, name="linear", uid=created["metadata"]["uid"])
    group = {
        "apiVersion": VOLCANO_POD_GROUPS.api_version,
        "kind": VOLCANO_POD_GROUPS.kind,
        "metadata": {"name": "linear", "ownerReferences": [owner]},
        "spec": {"minMember": 2, "queue": "moved-there"},
    }
    await cluster.user.create(VOLCANO_POD_GROUPS, cluster.namespace, group)
    await admit(cluster, phase="Running")
    renderer = renderer_of({**job, **created})
    uids = []
    for replica in renderer.job.replicas:
        pod = renderer.pod(replica)
        del pod["metadata"]["labels"][MANAGED_BY_LABEL]
        made = await cluster.user.create(PODS, cluster.namespace, pod)
        uids.append(str(made.metadata.uid))
    return uids


async def test_pod_group_of_training_operator_is_adopted(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        kinds = await install_with_gangs(cluster, VOLCANO)
        left = await leave(cluster, job_of())
        cluster.start(kinds=kinds)
        await cluster.until(lambda: "labels" in groups(cluster)[0]["metadata"])
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.settled()
        assert [pod["metadata"]["uid"] for pod in pods(cluster)] == left
        assert groups(cluster)[0]["spec"] == {"minMember": 2, "queue": "moved-there"}


def retried(cluster: ClusterHarness) -> str:
    """Return when the gang was last retried."""
    (group,) = groups(cluster, COSCHEDULING_POD_GROUPS)
    return str((group["metadata"].get("annotations") or {}).get(GANG_RETRIED_AT, ""))


async def test_waiting_gang_is_retried_until_it_is_scheduled(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.require_embedded("there, a scheduler of its own finds room for pods")
        cluster.node.has_room.clear()
        kinds = await install_with_gangs(cluster, "coscheduler")
        first = cluster.start(kinds=kinds)
        await cluster.submit(job_of())
        await cluster.until(lambda: len(cluster.pods()) == 2)
        assert retried(cluster) == ""
        await cluster.until(lambda: retried(cluster))
        before = written(cluster, "patch")
        await cluster.advance(300)
        assert 9 <= written(cluster, "patch") - before <= 11

        # A restarted controller knows the last retry.
        await first.kill()
        before, last = written(cluster, "patch"), retried(cluster)
        cluster.start(kinds=kinds)
        await cluster.advance(10)
        assert written(cluster, "patch") - before <= 1
        await cluster.until(lambda: retried(cluster) > last)

        cluster.node.has_room.set()
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.advance(60)
        before = written(cluster, "patch")
        await cluster.advance(300)
        assert written(cluster, "patch") == before


async def test_volcano_gang_is_not_retried(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.require_embedded("there, a scheduler of its own finds room for pods")
        cluster.node.has_room.clear()
        await start_with_gangs(cluster, VOLCANO)
        await cluster.submit(job_of())
        await cluster.until(lambda: groups(cluster))
        await admit(cluster)
        await cluster.until(lambda: len(cluster.pods()) == 2)
        await cluster.advance(300)
        assert written(cluster, "patch") == 0


@pytest.mark.embedded_only("it takes away the definition that others use")
async def test_removed_pod_group_crd_does_not_affect_the_job(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, "coscheduler")
        await cluster.submit(job_of())
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.user.delete(CRDS, ObjectKey("", COSCHEDULING_POD_GROUPS.group_resource))
        await cluster.until(lambda: "not served" in cluster.condition("Waiting"))
        await serve_pod_groups(cluster.user, COSCHEDULING_POD_GROUPS)
        await cluster.until(lambda: groups(cluster, COSCHEDULING_POD_GROUPS))
        await cluster.until(lambda: not cluster.condition("Waiting"))


async def test_pod_group_deleted_before_its_patch_does_not_affect_the_job(
    start_cluster: StartCluster,
) -> None:
    gone = StatusError(404, "NotFound", 'podgroups "linear" not found')
    async with start_cluster() as cluster:
        await start_with_gangs(cluster, "coscheduler")
        await cluster.submit(job_of())
        await cluster.until(lambda: cluster.condition("Running"))
        fault = Fault(
            verb="patch", resource=COSCHEDULING_POD_GROUPS.group_resource, status=gone, times=2
        )
        cluster.server.faults.add(fault)
        policy = {"schedulingPolicy": {"scheduleTimeoutSeconds": 7}}
        await change(cluster, {"runPolicy": policy})
        await cluster.until(
            lambda: (
                groups(cluster, COSCHEDULING_POD_GROUPS)[0]["spec"].get("scheduleTimeoutSeconds")
                == 7
            )
        )
        assert "FailedCreatePodGroup" not in cluster.events()
