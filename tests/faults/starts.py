"""Containers that do not start, or whose pod is not ready to run them."""

from typing import Final

from dlctl.api.status.verdict import Cause
from tests.faults import kubelet
from tests.faults.fault import (
    MEMORY_LIMITS,
    Blame,
    Fault,
    Scene,
    kubeflow_job,
    python,
    replicas,
    shell,
)

BAD: Final = Cause.BAD_COMMAND_OR_IMAGE
_GREEDY: Final = "import time; data = bytearray(300 << 20); time.sleep(60)"
_SOON: Final = {"startingDeadlineSeconds": 5}
_MISSING_SECRET: Final = {"secretKeyRef": {"name": "of-nobody", "key": "token"}}


def _worker(command: list[str], **pod: object) -> dict[str, object]:
    """Return a job whose master is fine."""
    specs = {"Master": replicas(1, shell("sleep 60")), "Worker": replicas(1, command, **pod)}
    return kubeflow_job("PyTorchJob", specs)


def _waiting(name: str, cause: Cause, says: str, reason: str, message: str) -> Fault:
    """Return a fault of a pod whose container waits, as a kubelet reports, until a deadline."""

    async def inject(scene: Scene) -> None:
        await kubelet.bind(scene, "master-0")
        await kubelet.wait(scene, "master-0", reason, message)

    master = replicas(1, shell("true"), **kubelet.BY_HAND)
    job = kubeflow_job("PyTorchJob", {"Master": master}, runPolicy=_SOON)
    return Fault(name, job, Blame(cause, "master-0"), says, inject=inject)


FAULTS: Final = [
    Fault("command-not-found", _worker(["tarin"]), Blame(BAD, "worker-0", 128), "tarin"),
    Fault(
        "command-not-found-by-the-shell",
        _worker(shell("exec tarin --lr 0.1")),
        Blame(BAD, "worker-0", 127),
        "tarin",
    ),
    Fault(
        "permission-denied", _worker(["/etc/passwd"]), Blame(BAD, "worker-0", 128), "/etc/passwd"
    ),
    Fault(
        "permission-denied-by-the-shell",
        _worker(shell("exec /etc/passwd")),
        Blame(BAD, "worker-0", 126),
    ),
    Fault(
        "wrong-architecture",
        _worker(shell("printf '\\177ELF\\2\\1\\1ARM' >train; chmod +x train; exec ./train")),
        Blame(BAD, "worker-0", 126),
    ),
    Fault(
        "init-container",
        _worker(
            shell("sleep 60"),
            initContainers=[
                {"name": "fetch", "image": "any", "command": shell("echo no bucket >&2; exit 4")}
            ],
        ),
        Blame(Cause.USER_CODE, "worker-0", 4),
        "no bucket",
    ),
    Fault(
        "memory-limit",
        _worker(python(_GREEDY), container={"resources": {"limits": {"memory": "64Mi"}}}),
        Blame(Cause.OUT_OF_MEMORY, "worker-0", 137),
        "out of memory",
        needs=(MEMORY_LIMITS,),
    ),
    Fault(
        "missing-secret",
        kubeflow_job(
            "PyTorchJob",
            {
                "Master": replicas(
                    1,
                    shell("true"),
                    container={"env": [{"name": "TOKEN", "valueFrom": _MISSING_SECRET}]},
                )
            },
            runPolicy=_SOON,
        ),
        Blame(Cause.CONFIGURATION, "master-0"),
        "of-nobody",
    ),
    Fault(
        "hang-until-the-deadline",
        kubeflow_job(
            "PyTorchJob",
            {"Master": replicas(1, shell("sleep 60")), "Worker": replicas(1, shell("sleep 60"))},
            runPolicy={"activeDeadlineSeconds": 2},
        ),
        Blame(Cause.DEADLINE),
    ),
    Fault(
        "deadline-of-a-pod",
        _worker(shell("sleep 60"), activeDeadlineSeconds=1),
        Blame(Cause.DEADLINE, "worker-0"),
    ),
    Fault(
        "deadline-of-a-pod-in-an-init-container",
        _worker(
            shell("sleep 60"),
            initContainers=[{"name": "fetch", "image": "any", "command": shell("sleep 60")}],
            activeDeadlineSeconds=1,
        ),
        Blame(Cause.DEADLINE, "worker-0"),
    ),
    _waiting(
        "image-pull",
        BAD,
        "registry.example/nobody:1",
        "ImagePullBackOff",
        'Back-off pulling image "registry.example/nobody:1"',
    ),
    _waiting(
        "container-config",
        Cause.CONFIGURATION,
        "of-nobody",
        "CreateContainerConfigError",
        'secret "of-nobody" not found',
    ),
]
