"""Elastic jobs without a framework: a launcher that treats its workers as Horovod does.

It connects to the listed hosts, and disconnects a while after they are no longer listed. Each line
of its output starts with the seconds since the epoch. Names are those of :mod:`e2e.suite.elastic`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dlctl.api.json_types import JSON
from e2e import leadership
from e2e.kubectl import Kubectl
from e2e.suite import elastic, jobs
from e2e.suite.elastic import JOBS, LAUNCHER, NAME
from e2e.testbed import ClusterTestbed

# Waits as long as WAIT_S in the scaler's environment says.
SCRIPT: Final = "/tmp/wait.sh"
LINGER_S: Final = 1.5
_GO: Final = "/tmp/go"
_LAUNCHER: Final = f"""\
import os, socket, time

def say(*words):
    print(f"{{time.time():.3f}}", *words, flush=True)

with open("{SCRIPT}", "w") as script:
    script.write('sleep "$WAIT_S"\\n')
held, last = {{}}, None
while not os.path.exists("{_GO}"):
    with open("/etc/edl/hostfile") as file:
        listed = [line.partition(":")[0] for line in file]
    if listed != last:
        last, since = listed, time.time()
        say("hosts", *listed)
    for host in set(listed) - set(held):
        try:
            held[host] = socket.create_connection((host, 22), 1)
        except OSError:
            pass
    if time.time() > since + {LINGER_S}:
        for host in set(held) - set(listed):
            held.pop(host).close()
            say("left", host)
    time.sleep(0.05)
"""
# It ends on SIGTERM, like workers without their own command.
_WORKER: Final = """\
import os, signal, socket, time

signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
listener = socket.create_server(("", 22))
time.sleep(1e6)
"""


def job(
    name: str = NAME, *, launcher: JSON | None = None, pod: JSON | None = None, **worker: Any
) -> JSON:
    """Return a job; ``launcher`` and ``pod`` are fields of the pods' specs, the rest of workers."""
    templates = {
        "launcher": _template(_LAUNCHER, launcher or {}),
        "worker": _template(_WORKER, pod or {}),
    }
    replicas: dict[str, JSON] = {"launcher": {"replicas": 1}, "worker": {"replicas": 2, **worker}}
    for type_, template in templates.items():
        replicas[type_]["template"] = {"spec": template}
    return {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"etReplicaSpecs": replicas},
    }


def start(kubectl: Kubectl, manifest: JSON) -> None:
    """Create a job, and wait until its launcher has found the workers."""
    kubectl.apply(manifest)
    until_listed(kubectl, range(manifest["spec"]["etReplicaSpecs"]["worker"]["replicas"]))
    elastic.until_phase(kubectl, JOBS, NAME, "Running", within_s=30)


def end(kubectl: Kubectl) -> None:
    """Let the launcher end, and check that the job succeeds."""
    kubectl("exec", LAUNCHER, "--", "touch", _GO)
    elastic.until_phase(kubectl, JOBS, NAME, "Succeeded", within_s=60)


def names(indexes: Sequence[int]) -> list[str]:
    return [f"{NAME}-worker-{index}" for index in indexes]


def said(kubectl: Kubectl, word: str) -> list[tuple[float, list[str]]]:
    """Return when the launcher printed a word, and about which workers."""
    lines = (line.split() for line in elastic.log(kubectl).splitlines())
    return [(float(at), rest) for at, first, *rest in lines if first == word]


def until_listed(kubectl: Kubectl, indexes: Sequence[int], *, within_s: float = 90) -> float:
    """Wait until the launcher has read exactly these workers; return the time."""

    def probe() -> float | None:
        read = said(kubectl, "hosts")
        return read[-1][0] if read and read[-1][1] == names(indexes) else None

    return kubectl.until(probe, within_s=within_s, what=f"a launcher that knows {list(indexes)}")


def scaled(kubectl: Kubectl, kind: str, name: str, **what: Any) -> JSON:
    """Scale the job, and return the final status of the request."""
    elastic.scale(kubectl, kind, name, **what)
    resource = elastic.SCALERS[kind]
    elastic.until_phase(kubectl, resource, name, "ScaleSucceeded", within_s=120)
    return jobs.status(kubectl, name, resource)


def times(
    testbed: ClusterTestbed, kubectl: Kubectl, verb: str, resource: str, name: str = ""
) -> list[float]:
    """Return when such requests were allowed, in seconds since the epoch."""
    found = []
    for request in testbed.audit(kubectl.namespace):
        about = request.get("objectRef") or {}
        path = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
        there = about.get("namespace") == kubectl.namespace and name in ("", about.get("name"))
        good = request["responseStatus"].get("code", 0) < 400
        if there and good and (request["verb"], path) == (verb, resource):
            found.append(leadership.time(request["stageTimestamp"]).timestamp())
    return sorted(found)


def condition_types(status: Mapping[str, Any]) -> list[str]:
    return [c["type"] for c in status.get("conditions", ()) if c["status"] == "True"]


def _template(program: str, fields: JSON) -> JSON:
    command = ["python3", "-c", program]
    container = {"name": "training", "image": jobs.IMAGE, "command": command}
    return {
        # The worker listens on a privileged port, and the launcher's keys are in root's home.
        "securityContext": {"runAsUser": 0},
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        **fields,
    }
