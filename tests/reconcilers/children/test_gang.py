"""The gang of a job: who is in it, what its PodGroup says, and what its pods carry."""

from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.defaults import JobDefaults
from dlctl.api.dependents import DependentObject
from dlctl.api.gangs import COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS, SchedulingPolicy
from dlctl.api.job import Job, Replica
from dlctl.api.meta import ObjectMeta
from dlctl.api.quantities import parse_quantity
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.children.gang import Gang
from dlctl.reconcilers.children.placement import PLACEMENT_HASH
from dlctl.reconcilers.children.render import Renderer
from dlctl.reconcilers.observe import Children, Observed, observe
from tests.builders import (
    NOW,
    RUNNING,
    bare_job,
    exited,
    make_pod,
    mxjob,
    renderer_of,
    training_job,
)
from tests.mpi_v2beta1 import mpi_job

JSON = dict[str, Any]
STATES: Final = {"Succeeded": exited(0), "Running": RUNNING, "Pending": None}
VOLCANO: Final = "volcano"
PLUGINS: Final = "scheduler-plugins-scheduler"


def ganged(wire: JSON, scheduler: str = VOLCANO, **job: Any) -> Renderer:
    """Return the renderer of a job in a cluster with this gang scheduler."""
    renderer = renderer_of(wire)
    defaults = JobDefaults(gang_scheduler_name=scheduler)
    return attrs.evolve(renderer, job=attrs.evolve(renderer.job, defaults=defaults, **job))


def training(policy: JSON | None = None, /, **counts: int) -> JSON:
    wire = training_job("PyTorchJob", **(counts or {"Master": 1, "Worker": 3}))
    if policy is not None:
        wire["spec"]["runPolicy"] = {"schedulingPolicy": policy}
    return wire


def resources(wire: JSON, type_: str, **resources: Any) -> None:
    """Set the resources of each replica of a type."""
    template = wire["spec"]["pytorchReplicaSpecs"][type_]["template"]
    template["spec"]["containers"][0]["resources"] = resources


def group(renderer: Renderer) -> JSON:
    dependent = renderer.gang.pod_group()
    assert dependent is not None
    return renderer.dependent(dependent)


def spec(wire: JSON, scheduler: str = VOLCANO) -> JSON:
    found: JSON = group(ganged(wire, scheduler))["spec"]
    return found


def with_launcher(renderer: Renderer, *, last: bool) -> Renderer:
    """Make the master gated until the others run, or created after them."""
    master, *others = renderer.job.replica_specs
    master = attrs.evolve(master, gated=not last, create_last=last)
    return attrs.evolve(renderer, job=attrs.evolve(renderer.job, replica_specs=(master, *others)))


def test_volcano_gets_a_pod_group() -> None:
    wire = training({"queue": "research", "priorityClass": "high", "scheduleTimeoutSeconds": 5})
    wire["metadata"]["annotations"] = {
        "a": "b",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    whole = group(ganged(wire))
    assert (whole["apiVersion"], whole["kind"]) == ("scheduling.volcano.sh/v1beta1", "PodGroup")
    metadata = whole["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("linear", "ml")
    assert metadata["ownerReferences"][0]["uid"] == "job-uid"
    assert {"a", "dlctl.dev/applied-annotations", "dlctl.dev/applied-hash"} == set(
        metadata["annotations"]
    )
    assert whole["spec"] == {"minMember": 4, "queue": "research", "priorityClassName": "high"}


def test_default_queue_is_used_unless_the_job_names_one() -> None:
    assert spec(training())["queue"] == "default"


def test_scheduler_plugin_gets_a_pod_group() -> None:
    wire = training({"queue": "research", "priorityClass": "high", "scheduleTimeoutSeconds": 5})
    whole = group(ganged(wire, PLUGINS))
    assert (whole["apiVersion"], whole["kind"]) == ("scheduling.x-k8s.io/v1alpha1", "PodGroup")
    assert whole["spec"] == {"minMember": 4, "scheduleTimeoutSeconds": 5}


@pytest.mark.parametrize("wire", [training(), mxjob(), bare_job()])
def test_no_pod_group_without_a_gang_scheduler(wire: JSON) -> None:
    renderer = ganged(wire, "")
    assert renderer.gang.pod_group() is None
    pod = renderer.pod(next(renderer.job.replicas))
    assert "schedulerName" not in pod["spec"]


def test_list_form_jobs_are_gangs_too() -> None:
    assert spec(mxjob(workers=2))["minMember"] == 4
    assert spec(bare_job())["minMember"] == 4


def test_local_job_has_no_pod_group() -> None:
    assert ganged(mxjob(), is_local=True).gang.pod_group() is None


@pytest.mark.parametrize(
    ("least", "members"),
    [
        pytest.param(None, 4, id="all"),
        pytest.param(3, 3, id="as many as given"),
        pytest.param(9, 4, id="at most all"),
        pytest.param(0, 1, id="at least one"),
    ],
)
def test_min_available_sets_min_member(least: int | None, members: int) -> None:
    assert spec(training({"minAvailable": least}))["minMember"] == members


@pytest.mark.parametrize(
    ("policy", "members"),
    [
        pytest.param({"minReplicas": 2, "maxReplicas": 8}, 3, id="minimum and the master"),
        pytest.param({"minReplicas": 5, "maxReplicas": 8}, 4, id="below the minimum"),
        pytest.param({}, 4, id="no limits"),
    ],
)
def test_min_replicas_of_an_elastic_job_sets_min_member(policy: JSON, members: int) -> None:
    wire = training()
    wire["spec"]["elasticPolicy"] = policy
    assert spec(wire)["minMember"] == members
    wire["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 1}}
    assert spec(wire)["minMember"] == 1


def test_launcher_is_in_the_gang_and_not_gated() -> None:
    wire = training()
    for name in ("Master", "Worker"):
        resources(wire, name, requests={"cpu": 1})
    for scheduler in (VOLCANO, PLUGINS):
        renderer = with_launcher(ganged(wire, scheduler), last=False)
        assert group(renderer)["spec"]["minMember"] == 4
        assert group(renderer)["spec"]["minResources"] == {"cpu": "4"}
        waiting, other = renderer.pod(Replica("master", 0)), renderer.pod(Replica("worker", 0))
        assert set(membership(waiting)) == set(membership(other)) != set()
        # The scheduler could not start a gated pod together with the others.
        assert "schedulingGates" not in waiting["spec"]


def test_launcher_created_last_is_not_in_min_member_but_in_min_resources() -> None:
    wire = training({"minAvailable": 4})
    resources(wire, "Master", requests={"cpu": 2})
    resources(wire, "Worker", requests={"cpu": 1})
    for scheduler in (VOLCANO, PLUGINS):
        renderer = with_launcher(ganged(wire, scheduler), last=True)
        assert group(renderer)["spec"]["minMember"] == 3
        assert group(renderer)["spec"]["minResources"] == {"cpu": "5"}
        last = renderer.pod(Replica("master", 0))
        assert last["spec"]["schedulerName"] == scheduler
        # Without a group, Volcano would put it into another queue than its job's.
        grouped = {"scheduling.k8s.io/group-name": "linear", "volcano.sh/task-spec": "master"}
        assert membership(last) == (grouped if scheduler == VOLCANO else {})


def membership(pod: JSON) -> JSON:
    """Return the annotations and labels that make a pod a member of its gang."""
    labels = {n: v for n, v in pod["metadata"]["labels"].items() if "pod-group" in n}
    return {**of_gang(pod["metadata"]["annotations"]), **labels}


def test_gang_without_members_has_no_pod_group() -> None:
    renderer = with_launcher(ganged(training(Master=1)), last=True)
    assert renderer.gang.pod_group() is None
    assert renderer.gang.hold_reason(nothing(renderer.job)) == ""


def test_min_resources_are_those_of_the_first_pods() -> None:
    wire = training({"minAvailable": 2})
    resources(wire, "Master", requests={"cpu": "500m", "memory": "1Gi"})
    limits = {"cpu": 4, "nvidia.com/gpu": 1}
    resources(wire, "Worker", requests={"cpu": 2, "memory": "512Mi"}, limits=limits)
    first = {"cpu": "2500m", "memory": "1536Mi", "nvidia.com/gpu": "1"}
    assert spec(wire)["minResources"] == first
    assert spec(wire, PLUGINS)["minResources"] == first


def test_limits_stand_in_for_missing_requests() -> None:
    wire = training(Worker=3)
    resources(wire, "Worker", limits={"cpu": 2})
    assert spec(wire)["minResources"] == {"cpu": "6"}


@pytest.mark.parametrize(
    "urgent", [{"priorityClassName": "system-node-critical"}, {"priority": 1000}]
)
def test_min_resources_count_pods_of_higher_priority_first(urgent: JSON) -> None:
    wire = training({"minAvailable": 1})
    resources(wire, "Master", requests={"cpu": 1})
    resources(wire, "Worker", requests={"cpu": 2})
    wire["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"] |= urgent
    assert spec(wire)["minResources"] == {"cpu": "2"}


def test_job_can_set_min_resources() -> None:
    wire = training({"minResources": {"cpu": "3000m", "memory": 1024}})
    resources(wire, "Worker", requests={"cpu": 2})
    assert spec(wire)["minResources"] == {"cpu": "3", "memory": "1024"}


def test_invalid_quantity_is_rejected() -> None:
    wire = training()
    resources(wire, "Worker", requests={"cpu": "lots"})
    with pytest.raises(InvalidJobError, match=r"requests\[cpu\]: must be a quantity"):
        spec(wire)


def test_more_resources_than_any_node_has_are_rejected() -> None:
    wire = training()
    resources(wire, "Worker", limits={f"example.com/device-{i}": 1 for i in range(5000)})
    with pytest.raises(InvalidJobError, match="at most 256 different resources"):
        spec(wire)


@given(
    masters=st.integers(0, 3),
    workers=st.integers(1, 6),
    least=st.none() | st.integers(0, 12),
    cpus=st.tuples(st.integers(0, 4000), st.integers(0, 4000)),
)
def test_min_resources_grow_with_min_member_up_to_the_total(
    masters: int, workers: int, least: int | None, cpus: tuple[int, int]
) -> None:
    job = ganged(training(Master=1, Worker=1)).job
    counts = {"master": masters, "worker": workers}
    wanted = dict(zip(counts, cpus, strict=True))
    specs = tuple(
        attrs.evolve(one, replicas=counts[one.type], template=template(f"{wanted[one.type]}m"))
        for one in job.replica_specs
    )

    def cpu(least: int | None) -> tuple[int, int]:
        policy = attrs.evolve(
            job.run_policy, scheduling_policy=SchedulingPolicy(min_available=least)
        )
        changed = attrs.evolve(job, replica_specs=specs, run_policy=policy)
        renderer = renderer_of(training())
        gang = Gang(changed, renderer.dialect.framework(changed))
        dependent = gang.pod_group()
        assert dependent is not None
        sum_ = dependent.body["spec"].get("minResources", {}).get("cpu", "0")
        return gang.min_member(), int(parse_quantity(sum_) * 1000)

    members, sum_ = cpu(least)
    of_all = masters * cpus[0] + workers * cpus[1]
    assert 1 <= members <= masters + workers
    assert sum_ <= of_all
    assert cpu(members) == (members, sum_)
    if members == masters + workers:
        assert sum_ == of_all
    elif members < masters + workers:
        assert sum_ <= cpu(members + 1)[1]


def template(cpu: str) -> JSON:
    container = {"name": "pytorch", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"containers": [container]}}


def of_gang(annotations: JSON) -> JSON:
    return {name: value for name, value in annotations.items() if name != PLACEMENT_HASH}


def test_volcano_pods_are_annotated_with_their_group() -> None:
    pod = ganged(training()).pod(Replica("worker", 2))
    assert pod["spec"]["schedulerName"] == "volcano"
    assert of_gang(pod["metadata"]["annotations"]) == {
        "scheduling.k8s.io/group-name": "linear",
        "volcano.sh/task-spec": "worker",
    }


def test_plugin_pods_are_labelled_with_their_group() -> None:
    pod = ganged(training(), PLUGINS).pod(Replica("worker", 2))
    assert pod["spec"]["schedulerName"] == PLUGINS
    assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "linear"
    assert of_gang(pod["metadata"]["annotations"]) == {}


def test_scheduler_name_set_by_the_user_is_kept() -> None:
    wire = training()
    wire["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "own"
    assert ganged(wire).pod(Replica("worker", 0))["spec"]["schedulerName"] == "own"
    assert ganged(mxjob(schedulerName="own")).pod(Replica("worker", 0))["spec"][
        "schedulerName"
    ] == ("own")


def test_pods_of_another_scheduler_are_not_in_the_gang() -> None:
    wire = training()
    assert ganged(wire).gang.other_scheduler_types == []
    wire["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "own"
    assert ganged(wire).gang.other_scheduler_types == ["worker"]
    assert ganged(wire, "own").gang.other_scheduler_types == []
    assert ganged(wire, "").gang.other_scheduler_types == []
    assert ganged(mxjob(schedulerName="own")).gang.other_scheduler_types == [
        "scheduler",
        "server",
        "worker",
    ]


def nothing(job: Job) -> Observed:
    return observe(job, Children(), NOW)


def seen(job: Job, phase: str | None, **metadata: Any) -> Observed:
    status = None if phase is None else {"phase": phase}
    there = DependentObject(metadata=ObjectMeta(name="linear", **metadata), status=status)
    return observe(job, Children(dependents={VOLCANO_POD_GROUPS: [there]}), NOW)


@pytest.mark.parametrize(
    ("phase", "held"),
    [(None, True), ("", True), ("Pending", True), ("Inqueue", False), ("Running", False)],
)
def test_pods_wait_until_volcano_has_admitted_the_gang(phase: str | None, held: bool) -> None:
    renderer = ganged(training())
    assert bool(renderer.gang.hold_reason(seen(renderer.job, phase))) is held


def test_missing_or_terminating_pod_group_is_not_admitted() -> None:
    renderer = ganged(training())
    assert renderer.gang.hold_reason(nothing(renderer.job))
    assert renderer.gang.hold_reason(seen(renderer.job, "Running", deletion_timestamp=NOW))


@pytest.mark.parametrize(
    ("scheduler", "states", "members"),
    [
        pytest.param(PLUGINS, ["Succeeded", "Succeeded", "Running"], 3, id="none to start"),
        pytest.param(PLUGINS, ["Succeeded", "Succeeded", "Pending"], 1, id="one to start"),
        pytest.param(PLUGINS, ["Succeeded", "Running", None], 2, id="one to create"),
        pytest.param(PLUGINS, ["Pending", "Running", None], 3, id="none finished"),
        pytest.param(VOLCANO, ["Succeeded", "Succeeded", "Pending"], 3, id="Volcano counts them"),
    ],
)
def test_min_member_for_the_plugin_excludes_finished_pods(
    scheduler: str, states: list[str | None], members: int
) -> None:
    renderer = ganged(training(Worker=3), scheduler)
    job = renderer.job
    pods = [
        make_pod(job, Replica("worker", index), phase=phase, state=STATES[phase])
        for index, phase in enumerate(states)
        if phase is not None
    ]
    finished = renderer.gang.finished_count(observe(job, Children(pods), NOW))
    dependent = renderer.gang.pod_group(finished)
    assert dependent is not None
    assert dependent.body["spec"]["minMember"] == members


def test_min_member_for_the_plugin_includes_a_pod_whose_sidecar_still_runs() -> None:
    renderer = ganged(training(Worker=2), PLUGINS)
    job = renderer.job
    done = make_pod(job, Replica("worker", 0), phase="Running", state=STATES["Succeeded"])
    assert renderer.gang.finished_count(observe(job, Children([done]), NOW)) == 0


def test_pods_do_not_wait_for_the_plugin() -> None:
    renderer = ganged(training(), PLUGINS)
    assert renderer.gang.pod_group_resource == COSCHEDULING_POD_GROUPS
    assert renderer.gang.hold_reason(nothing(renderer.job)) == ""


@pytest.mark.parametrize(("creation", "members"), [("AtStartup", 3), ("WaitForWorkersReady", 2)])
def test_launcher_that_waits_for_the_gang_is_not_waited_for(creation: str, members: int) -> None:
    renderer = ganged(mpi_job(2, launcherCreationPolicy=creation))
    assert group(renderer)["spec"]["minMember"] == members


@pytest.mark.parametrize(
    ("scheduler", "field", "name"),
    [
        (VOLCANO, "annotations", "scheduling.k8s.io/group-name"),
        (PLUGINS, "labels", "scheduling.x-k8s.io/pod-group"),
    ],
)
def test_pods_of_a_launchers_job_are_in_the_gang(scheduler: str, field: str, name: str) -> None:
    job = ganged(mpi_job(), scheduler).launcher_job(suspended=False)
    template = job["spec"]["template"]
    assert template["metadata"][field][name] == "pi"
    assert template["spec"]["schedulerName"] == scheduler
