"""What schedulers, kubelets and controllers do to pods, written as they do; no program fails."""

from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.status.verdict import Cause
from tests.faults import kubelet
from tests.faults.fault import GANG, Blame, Fault, Inject, Scene, kubeflow_job, replicas, shell

_MEMBERS: Final = ("master-0", "worker-0")


def _played(name: str, cause: Cause, says: str, inject: Inject) -> Fault:
    """Return a fault of a pod whose life is played, beside one that runs."""

    async def act(scene: Scene) -> None:
        await kubelet.run(scene, *_MEMBERS)
        await inject(scene)

    return Fault(name, _job(kubelet.BY_HAND), Blame(cause, "worker-0"), says, inject=act)


def _real(name: str, cause: Cause, says: str, inject: Inject) -> Fault:
    async def act(scene: Scene) -> None:
        await kubelet.until_runs(scene, *_MEMBERS)
        await inject(scene)

    return Fault(name, _job({}, runPolicy=GANG), Blame(cause, "worker-0"), says, inject=act)


def _job(pod: JSON, **spec: Any) -> JSON:
    sleep = shell("sleep 60")
    specs = {"Master": replicas(1, sleep, **pod), "Worker": replicas(1, sleep, **pod)}
    return kubeflow_job("PyTorchJob", specs, **spec)


def _failing(**fields: Any) -> Inject:
    async def inject(scene: Scene) -> None:
        await kubelet.fail(scene, "worker-0", **fields)

    return inject


def _refused(reason: str, message: str) -> Inject:
    """Return what a node reports of a pod that it does not admit."""

    async def inject(scene: Scene) -> None:
        await kubelet.report(scene, "worker-0", "Failed", [], reason=reason, message=message)

    return inject


def _disrupted(reason: str, message: str) -> Inject:
    async def inject(scene: Scene) -> None:
        await kubelet.disrupt(scene, "worker-0", reason, message)

    return inject


async def _evicted(scene: Scene) -> None:
    await kubelet.evict(scene, "worker-0")


FAULTS: Final = [
    _real("evicted-by-a-drain", Cause.EVICTION, "evict", _evicted),
    _real(
        "preempted",
        Cause.PREEMPTION,
        "preempted",
        _disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a pod"),
    ),
    _real(
        "deleted-for-a-taint",
        Cause.NODE,
        "taint",
        _disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),
    ),
    _played(
        "memory-pressure",
        Cause.EVICTION,
        "low on resource",
        _failing(
            reason="Evicted",
            message="The node was low on resource: memory. Threshold quantity: 100Mi.",
            disruption="TerminationByKubelet",
        ),
    ),
    _played(
        "disk-pressure",
        Cause.EVICTION,
        "low on resource",
        _failing(
            reason="Evicted",
            message="The node was low on resource: ephemeral-storage.",
            disruption="TerminationByKubelet",
        ),
    ),
    _played(
        "own-storage-limit",
        Cause.CONFIGURATION,
        "ephemeral local storage usage",
        _failing(
            reason="Evicted",
            message="Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
        ),
    ),
    _played(
        "node-shutdown",
        Cause.NODE,
        "shut",
        _failing(
            code=0,
            why="Completed",
            reason="Terminated",
            message="Pod was terminated in response to imminent node shutdown.",
            disruption="TerminationByKubelet",
        ),
    ),
    _played(
        "preempted-by-the-kubelet",
        Cause.PREEMPTION,
        "critical",
        _failing(
            reason="Preempting",
            message="Preempted in order to admit critical pod",
            disruption="TerminationByKubelet",
        ),
    ),
    _played(
        "pod-garbage-collection",
        Cause.NODE,
        "node",
        _failing(why="ContainerStatusUnknown", disruption="DeletionByPodGC"),
    ),
    _played(
        "container-status-unknown",
        Cause.NODE,
        "node",
        _failing(
            why="ContainerStatusUnknown",
            said="The container could not be located when the pod was terminated",
        ),
    ),
    _played("node-lost", Cause.NODE, "node", _failing(reason="NodeLost", message="Node is lost")),
    _played(
        "out-of-cpu",
        Cause.PLATFORM,
        "cpu",
        _refused("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"),
    ),
    _played(
        "out-of-gpus",
        Cause.PLATFORM,
        "nvidia.com/gpu",
        _refused("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu"),
    ),
    _played(
        "unhealthy-devices",
        Cause.PLATFORM,
        "no healthy devices present",
        _refused(
            "UnexpectedAdmissionError",
            "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices"
            " nvidia.com/gpu, which is unexpected",
        ),
    ),
    _played(
        "refused-by-a-node-that-shuts-down",
        Cause.NODE,
        "shut",
        _refused("NodeShutdown", "Pod was rejected as the node is shutting down."),
    ),
    _played(
        "missing-working-directory",
        Cause.BAD_COMMAND_OR_IMAGE,
        "/workspace/nowhere",
        _failing(
            code=128,
            why="StartError",
            said="failed to create containerd task: OCI runtime create failed: chdir to cwd"
            ' ("/workspace/nowhere") set in config.json failed: no such file or directory',
        ),
    ),
]
