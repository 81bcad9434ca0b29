"""Which pending pods are replaced because the placement in their template has changed."""

from typing import Any, Final

import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import PLACEMENT_HASH, Pod, PodSchedulingGate, PodSpec
from dlctl.reconcilers.children.placement import outdated_pods, placement_hash
from dlctl.reconcilers.observe import Children, observe
from tests.builders import NOW, RUNNING, make_job, make_pod, training_job

WORKER: Final = Replica("worker", 0)


def job_with(**pod_spec: Any) -> Job:
    wire = training_job("PyTorchJob", Worker=1)
    wire["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"].update(pod_spec)
    return make_job(wire)


def pod_of(job: Job, *, annotated: bool = True, **status: Any) -> Pod:
    """Return a pod as it is created for the job; pending unless its status says otherwise."""
    (spec,) = job.replica_specs
    metadata = status.pop("metadata", {})
    annotations = {PLACEMENT_HASH: placement_hash(spec.template)} if annotated else {}
    metadata = {"annotations": annotations, **metadata}
    return make_pod(job, WORKER, metadata=metadata, **{"phase": "Pending", **status})


def replaced(job: Job, pod: Pod) -> list[Pod]:
    return list(outdated_pods(job, observe(job, Children([pod]), NOW)))


@pytest.mark.parametrize(
    "moved",
    [
        {"nodeSelector": {"flavor": "spot"}},
        {"tolerations": [{"key": "spot"}]},
        {"affinity": {"nodeAffinity": {}}},
        {"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]},
    ],
)
def test_pending_pod_with_outdated_placement_is_replaced(moved: dict[str, Any]) -> None:
    before, after = job_with(), job_with(**moved)
    old, new = pod_of(before), pod_of(after)
    assert replaced(after, old) == [old]
    assert replaced(before, new) == [new]
    assert replaced(after, new) == []


def test_gated_pod_with_outdated_placement_is_replaced() -> None:
    old = pod_of(job_with())
    gated = Pod(
        metadata=old.metadata,
        spec=PodSpec(scheduling_gates=(PodSchedulingGate("a"),)),
        status=old.status,
    )
    assert replaced(job_with(nodeSelector={"a": "b"}), gated) == [gated]


@pytest.mark.parametrize("empty", [{"nodeSelector": {}}, {"tolerations": []}, {"affinity": None}])
def test_empty_placement_fields_equal_missing_ones(empty: dict[str, Any]) -> None:
    assert replaced(job_with(**empty), pod_of(job_with())) == []


def test_other_template_changes_replace_no_pod() -> None:
    assert replaced(job_with(hostNetwork=True), pod_of(job_with())) == []


def test_scheduled_terminating_and_foreign_pods_are_not_replaced() -> None:
    before, after = job_with(), job_with(nodeSelector={"flavor": "spot"})
    waiting = pod_of(before)
    for pod in (
        pod_of(before, phase="Running", state=RUNNING),
        Pod(metadata=waiting.metadata, spec=PodSpec(node_name="a"), status=waiting.status),
        pod_of(before, metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"}),
        pod_of(before, annotated=False),
    ):
        assert replaced(after, pod) == []
