"""A gang that trains in steps and saves checkpoints in a store, and what its status says of it.

All ranks take each step together, like DistributedDataParallel: where one is gone, the others end.
"""

from typing import Any, Final

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl
from e2e.suite import jobs
from e2e.suite.kubeflow import true_conditions
from e2e.watching import ChangeRecord

RESOURCE: Final = "pytorchjobs.kubeflow.org"
NAME: Final = "gang"
JOB_LABEL: Final = "training.kubeflow.org/job-name"
LABEL: Final = "dlctl.dev/restart-attempt"
SIZE: Final = 3
STEPS: Final = 60
_PORT: Final = 6000
_STORE: Final = f"""
from multiprocessing.connection import Listener
value = 0
with Listener(("0.0.0.0", {_PORT})) as listener:
    while True:
        try:
            with listener.accept() as client:
                sent = client.recv()
                value = value if sent is None else sent
                client.send(value)
        except EOFError:
            pass
"""
# On SIGTERM the first rank saves, and all exit with 0, as with Hugging Face and Lightning.
_TRAIN: Final = f"""
import os, signal, sys, time
from multiprocessing.connection import Client, Listener

rank, size = int(os.environ["HOSTNAME"].rpartition("-")[2]), {SIZE}
attempt = os.environ["DLCTL_RESTART_ATTEMPT"]
address = "{NAME}-worker-0", 23456

def stored(value=None):
    with Client((os.environ["STORE"], {_PORT})) as store:
        store.send(value)
        return store.recv()

def master():
    for _ in range(300):
        try:
            return Client(address)
        except OSError:
            time.sleep(0.2)
    sys.exit("RuntimeError: the rendezvous has timed out")

def leave(*_):
    if rank == 0:
        stored(step)
        print("saved step", step)
    sys.exit(0)

step = stored()
signal.signal(signal.SIGTERM, leave)
print(f"attempt {{attempt}}: rank {{rank}} of {{size}} goes on after step {{step}}")
if rank == 0:
    with Listener(("0.0.0.0", address[1])) as listener:
        peers = [listener.accept() for _ in range(size - 1)]
else:
    peers = [master()]
while step < {STEPS}:
    step += 1
    if os.path.exists("/tmp/fail"):
        exec(open("/tmp/fail").read())
    try:
        for peer in peers:
            peer.send(step)
        for peer in peers:
            peer.recv()
    except (OSError, EOFError):
        time.sleep(int(os.environ["NOTICES_S"]))
        sys.exit("RuntimeError: Connection closed by peer")
    if rank == 0 and step % int(os.environ["SAVE_EVERY"]) == 0:
        stored(step)
    time.sleep(0.5)
print("done after step", step)
"""


def start_store(kubectl: Kubectl, node: str) -> str:
    """Start the store of checkpoints on a node, and return its address."""
    container = {"name": "store", "image": jobs.IMAGE, "command": ["python3", "-uc", _STORE]}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "store"}, "spec": spec})
    kubectl("wait", "pod/store", "--for=condition=Ready", "--timeout=60s", within_s=65)
    pod = kubectl.get("pod", "store")
    assert pod
    address: str = pod["status"]["podIP"]
    return address


def gang(store: str, *, save_every: int = 5, notices_s: int = 0, **container: Any) -> JSON:
    """Return a job of three workers, spread over the nodes; the first hosts the rendezvous.

    A rank ends ``notices_s`` seconds after it has lost a peer.
    """
    env = {"STORE": store, "SAVE_EVERY": str(save_every), "NOTICES_S": str(notices_s)}
    leave = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute"}
        for why in ("unreachable", "not-ready")
    ]
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {JOB_LABEL: NAME}},
    }
    pod = {
        "terminationGracePeriodSeconds": 5,
        "tolerations": [{**each, "tolerationSeconds": 2} for each in leave],
        "topologySpreadConstraints": [spread],
        "containers": [
            {
                "name": "pytorch",
                "image": jobs.IMAGE,
                "command": ["python3", "-uc", _TRAIN],
                "env": [{"name": name, "value": value} for name, value in env.items()],
                **container,
            }
        ],
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": NAME},
        "spec": {
            "nprocPerNode": "1",
            "runPolicy": {"failurePolicy": {"maxRestarts": 2}},
            "pytorchReplicaSpecs": {"Worker": {"replicas": SIZE, "template": {"spec": pod}}},
        },
    }


def status(kubectl: Kubectl) -> JSON:
    return (kubectl.get(RESOURCE, NAME) or {}).get("status") or {}


def attempts(kubectl: Kubectl) -> list[JSON]:
    found: list[JSON] = status(kubectl).get("dlctl", {}).get("attempts", [])
    return found


def until_trains(kubectl: Kubectl, *, attempt: int = 0, within_s: float = 60) -> list[JSON]:
    """Wait until all ranks take steps in an attempt, and return their pods by rank."""
    text = f"attempt {attempt}: rank 0 of {SIZE} goes on after step"

    def probe() -> list[JSON] | None:
        pods = [pod for pod in members(kubectl) if is_of(pod, attempt)]
        if len(pods) < SIZE or {pod["status"].get("phase") for pod in pods} != {"Running"}:
            return None
        return pods if text in kubectl("logs", f"{NAME}-worker-0") else None

    return kubectl.until(probe, within_s=within_s, what=f"{NAME} to train in attempt {attempt}")


def members(kubectl: Kubectl) -> list[JSON]:
    found = kubectl.items("pods", f"{JOB_LABEL}={NAME}")
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def is_of(pod: JSON, attempt: int) -> bool:
    return bool(pod["metadata"]["labels"].get(LABEL, "0") == str(attempt))


def resumed_after(kubectl: Kubectl) -> int:
    """Return the step after which the first rank of the present attempt has gone on."""
    said = kubectl("logs", f"{NAME}-worker-0")
    (line,) = [line for line in said.splitlines() if " goes on after step " in line]
    return int(line.rpartition(" ")[2])


def until_succeeded(kubectl: Kubectl, *, within_s: float) -> JSON:
    def probe() -> JSON | None:
        found = status(kubectl)
        assert "Failed" not in true_conditions(found), found
        return found if "Succeeded" in true_conditions(found) else None

    return kubectl.until(probe, within_s=within_s, what=f"{NAME} to succeed")


def overlaps(record: ChangeRecord) -> list[set[str]]:
    """Return the attempts that had pods at the same time, for each change when there were two."""
    alive: dict[str, str] = {}
    found = []
    for change in record.changes():
        labels = change.object["metadata"].get("labels", {})
        if labels.get(JOB_LABEL) != NAME:
            continue
        if change.deleted:
            alive.pop(change.uid, None)
        else:
            alive[change.uid] = labels.get(LABEL, "0")
        if len(set(alive.values())) > 1:
            found.append(set(alive.values()))
    return found
