"""The pods of a gang: what they carry, and how long they wait for its PodGroup."""

from typing import Any

import msgspec
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.meta import ObjectMeta
from dlctl.api.objects.dependents import DependentObject
from dlctl.api.objects.pod_groups import COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS
from dlctl.reconcilers.observe import Children, Observed, observe
from tests.builders import NOW, mxjob
from tests.mpi_v2beta1 import mpi_job
from tests.reconcilers.children.gangs import (
    PLUGINS,
    VOLCANO,
    ganged,
    group,
    membership,
    nothing,
    of_gang,
    resources,
    training,
    with_launcher,
)


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


def test_volcano_pods_are_annotated_with_their_group() -> None:
    wire = training()
    template = wire["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"annotations": {"example.com/own": "kept"}}
    pod = ganged(wire).pod(Replica("worker", 2))
    assert pod["spec"]["schedulerName"] == "volcano"
    assert of_gang(pod["metadata"]["annotations"]) == {
        "example.com/own": "kept",
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


def seen(job: Job, phase: str | None, **metadata: Any) -> Observed:
    status = msgspec.Raw(msgspec.json.encode(None if phase is None else {"phase": phase}))
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


def test_pods_do_not_wait_for_the_plugin() -> None:
    renderer = ganged(training(), PLUGINS)
    assert renderer.gang.pod_group_resource == COSCHEDULING_POD_GROUPS
    assert renderer.gang.hold_reason(nothing(renderer.job)) == ""


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
