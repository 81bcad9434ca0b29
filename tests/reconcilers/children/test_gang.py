"""The PodGroup of a gang: how many pods it waits for, and their resources."""

from typing import Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.job import Replica
from dlctl.api.json_types import JSON
from dlctl.api.policies.scheduling_policy import SchedulingPolicy
from dlctl.api.quantities import parse_quantity
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.children.gang import Gang
from dlctl.reconcilers.observe import Children, observe
from tests.builders import NOW, RUNNING, bare_job, exited, make_pod, mxjob, renderer_of
from tests.mpi_v2beta1 import mpi_job
from tests.reconcilers.children.gangs import (
    PLUGINS,
    VOLCANO,
    ganged,
    group,
    membership,
    nothing,
    resources,
    training,
    with_launcher,
)

STATES: Final = {"Succeeded": exited(0), "Running": RUNNING, "Pending": None}


def template(cpu: str) -> JSON:
    container = {"name": "pytorch", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"containers": [container]}}


def spec(wire: JSON, scheduler: str = VOLCANO) -> JSON:
    found: JSON = group(ganged(wire, scheduler))["spec"]
    return found


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


@pytest.mark.parametrize("scheduler", [VOLCANO, PLUGINS])
def test_empty_min_resources_reserve_nothing(scheduler: str) -> None:
    wire = training({"minResources": {}})
    resources(wire, "Worker", requests={"cpu": 2})
    assert "minResources" not in spec(wire, scheduler)


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


def test_launcher_outside_the_gang_is_none_of_its_pods_to_start() -> None:
    renderer = with_launcher(ganged(training(), PLUGINS), last=True)
    workers = [r for r in renderer.job.replicas if r.type == "worker"]
    pods = [make_pod(renderer.job, r, phase="Succeeded", state=exited(0)) for r in workers]
    assert renderer.gang.finished_count(observe(renderer.job, Children(pods), NOW)) == 0


@pytest.mark.parametrize(
    ("creation", "workers", "members"),
    [("AtStartup", 2, 3), ("WaitForWorkersReady", 2, 2), ("WaitForWorkersReady", None, 1)],
)
def test_launcher_that_waits_for_workers_is_not_waited_for(
    creation: str, workers: int | None, members: int
) -> None:
    renderer = ganged(mpi_job(workers, launcherCreationPolicy=creation))
    assert group(renderer)["spec"]["minMember"] == members
