"""How replicas terminate, or never start, on a real node, and the effect on their jobs.

All jobs run at the same time in one namespace; each test checks its own.
"""

from collections.abc import Iterator
from typing import Any, Final

import attrs
import pytest

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl
from e2e.suite import jobs
from e2e.suite.namespaces import own_namespace

MXJOBS: Final = "mxjobs.kubeflow.org"
# Once it exists, replicas that failed before succeed.
SWITCH: Final = "switch"
POLICIES: Final = ("Never", "OnFailure")


@attrs.frozen
class Exit:
    """A real way for a container to exit with a code; signals are sent from inside."""

    name: str
    code: int
    command: tuple[str, ...]
    reason: str = "Error"

    def job(self, policy: str) -> str:
        return f"{self.name}-{policy.lower()}"


def killed(name: str, code: int) -> Exit:
    # The first process of a container ignores its own signals, so a child is killed and the shell
    # returns its code. Kubernetes turns two dollars into one.
    return Exit(name, code, ("sh", "-c", f"sh -c 'kill -s {name.upper()} $$$$'; exit $?"))


def ended_by(name: str, code: int, line: str) -> Exit:
    return Exit(name, code, ("sh", "-c", f"{line}; exit $?"))


PERMANENT: Final = (
    ended_by("error", 1, "false"),
    Exit("misuse", 2, ("sh", "-c", "if")),
    ended_by("directory", 126, "/etc"),
    ended_by("unknown", 127, "no-such-command"),
    Exit("no-entrypoint", 128, ("/no/such/program",), "StartError"),
    killed("segv", 139),
    # Unlike a signal, a fault also kills the first process of a container.
    Exit("fault", 139, ("python3", "-c", "import ctypes; ctypes.string_at(0)")),
)
RETRYABLE: Final = (
    killed("int", 130),
    killed("kill", 137),
    killed("usr1", 138),
    killed("term", 143),
)
OUT_OF_MEMORY: Final = Exit(
    "oom", 137, ("python3", "-c", "b = bytearray(1 << 28)"), reason="OOMKilled"
)


@pytest.fixture(scope="module")
def submitted(cluster: Kubectl, controller: Kubectl) -> Iterator[Kubectl]:
    """All jobs of this module; most end by themselves."""
    with own_namespace(cluster) as inside:
        little = {"resources": {"limits": {"memory": "32Mi"}}}
        inside.apply(
            # First, as it takes the longest.
            *(tried_twice(exit_) for exit_ in RETRYABLE),
            *(tried_in_place(exit_) for exit_ in RETRYABLE),
            one("pull", ("true",), container={"image": "localhost/no/such/image:e2e"}),
            one("unschedulable", ("true",), container={"resources": {"requests": {"cpu": "999"}}}),
            *(permanent(exit_, policy) for exit_ in PERMANENT for policy in POLICIES),
            *(permanent(OUT_OF_MEMORY, policy, container=little) for policy in POLICIES),
        )
        yield inside


@pytest.fixture(scope="module")
def switched(submitted: Kubectl) -> None:
    """Once all jobs that must fail first have failed, let them succeed."""

    def probe() -> bool:
        found = {job["metadata"]["name"]: job for job in submitted.items(MXJOBS)}
        return all(found[e.job("Never")].get("status", {}).get("restarts") for e in RETRYABLE)

    submitted.until(probe, within_s=60, what="a first failure of each retryable exit")
    submitted("create", "configmap", SWITCH, "--from-literal=on=")


def one(name: str, command: tuple[str, ...], policy: str = "Never", **pod: Any) -> JSON:
    """Return a job of one replica."""
    cleanup = pod.pop("cleanup", "None")
    worker = jobs.replicas("WORKER", 1, command, restartPolicy=policy, **pod)
    return jobs.mxjob(name, worker, cleanupPodPolicy=cleanup)


def permanent(exit_: Exit, policy: str, **pod: Any) -> JSON:
    # Pods that the kubelet would restart must be deleted.
    cleanup = "None" if policy == "Never" else "All"
    return one(exit_.job(policy), exit_.command, policy, cleanup=cleanup, **pod)


def tried_twice(exit_: Exit) -> JSON:
    """Return a job whose replica exits like this until the switch exists."""
    volume = {"name": "try", "configMap": {"name": SWITCH, "optional": True}}
    return one(exit_.job("Never"), unless_on(exit_), **tries(volume))


def tried_in_place(exit_: Exit) -> JSON:
    """Return a job whose replica exits like this in the first run of its container only."""
    volume: JSON = {"name": "try", "emptyDir": {}}
    return one(exit_.job("OnFailure"), unless_on(exit_), "OnFailure", **tries(volume))


def unless_on(exit_: Exit) -> tuple[str, ...]:
    """Return a command that exits like this unless a file exists, which it tries to create."""
    # A ConfigMap volume is read-only, so the write fails.
    line = f"test -e /try/on && exit 0; touch /try/on 2>/dev/null; {exit_.command[2]}"
    return ("sh", "-c", line)


def tries(volume: JSON) -> JSON:
    mounts = [{"name": volume["name"], "mountPath": "/try"}]
    return {"volumes": [volume], "container": {"volumeMounts": mounts}}


@pytest.mark.parametrize("exit_", RETRYABLE, ids=lambda exit_: exit_.name)
@pytest.mark.usefixtures("switched")
def test_retryable_exit_causes_a_new_pod_that_can_succeed(namespace: Kubectl, exit_: Exit) -> None:
    name = exit_.job("Never")
    found = jobs.ended(namespace, name)

    assert (found["phase"], found["state"], found["reason"]) == ("Done", "Succeeded", "")
    restart = found["restarts"]["worker-0"]
    assert (restart["exitCode"], restart["reason"]) == (exit_.code, "Error")
    [pod] = pods(namespace, name)
    assert pod["metadata"]["uid"] != restart["podUID"]
    # On a busy machine the switch may exist only after a second failure.
    assert restart["failures"] == restart["consecutiveEnds"] == created(namespace, name) - 1 >= 1
    messages = await_events(namespace, name, "MXJobRestarting")
    assert all(f"worker-0: Error, exit code {exit_.code} (" in message for message in messages)
    assert await_events(namespace, name, "MXJobSucceeded")
    assert "failure" not in found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("exit_", [*PERMANENT, OUT_OF_MEMORY], ids=lambda exit_: exit_.name)
def test_permanent_exit_fails_the_job_at_once(namespace: Kubectl, exit_: Exit, policy: str) -> None:
    name = exit_.job(policy)
    found = jobs.ended(namespace, name)

    assert (found["phase"], found["state"]) == ("Done", "Failed")
    failure = found["failure"]
    assert (failure["exitCode"], failure["reason"]) == (exit_.code, exit_.reason)
    assert failure["replica"] == "worker-0"
    assert f"exit code {exit_.code} (" in found["reason"]
    assert "restarts" not in found
    assert found["dlctl"]["replicaStatuses"][0]["ReplicasStates"] == {"Failed": 1}
    assert conditions(found)["Failed"]["message"] == found["reason"]
    assert await_events(namespace, name, "MXJobFailed") == [found["reason"]]
    assert created(namespace, name) == 1
    assert len(pods(namespace, name)) == (policy == "Never")


@pytest.mark.parametrize("exit_", RETRYABLE, ids=lambda exit_: exit_.name)
def test_restart_in_place_keeps_the_pod(namespace: Kubectl, exit_: Exit) -> None:
    name = exit_.job("OnFailure")
    found = jobs.ended(namespace, name)

    assert (found["phase"], found["state"]) == ("Done", "Succeeded")
    [pod] = pods(namespace, name)
    [container] = pod["status"]["containerStatuses"]
    assert container["restartCount"] == 1
    assert "restarts" not in found
    assert created(namespace, name) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("pull", "worker-0 waits: image ", id="image"),
        pytest.param("unschedulable", "worker-0 waits: no node fits: ", id="node"),
    ],
)
def test_replica_that_cannot_start_is_awaited(namespace: Kubectl, name: str, message: str) -> None:
    def waits() -> JSON | None:
        found = jobs.status(namespace, name)
        return found if "Waiting" in conditions(found) else None

    found = namespace.until(waits, within_s=60, what=f"a word on what keeps {name}")
    assert (found["phase"], found["state"]) == ("Creating", "Running")
    assert conditions(found)["Waiting"]["message"].startswith(message)
    # The last one is the state.
    assert found["conditions"][0]["type"] == "Waiting"
    assert "restarts" not in found
    assert "failure" not in found
    [pod] = pods(namespace, name)
    assert pod["status"]["phase"] == "Pending"


def conditions(status: JSON) -> dict[str, JSON]:
    return {condition["type"]: condition for condition in status.get("conditions", ())}


def pods(kubectl: Kubectl, name: str) -> list[JSON]:
    """Return the pods of a job that are not terminating."""
    found = kubectl.items("pods", f"mx_job_name={name}")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def await_events(kubectl: Kubectl, name: str, reason: str) -> list[str]:
    """Wait for events with a reason; they are recorded after their cause."""
    return kubectl.until(
        lambda: jobs.events(kubectl, name, reason), within_s=15, what=f"the event {reason}"
    )


def created(kubectl: Kubectl, name: str) -> int:
    """Return the number of created pods reported by events for a job of one replica."""
    await_events(kubectl, name, "SuccessfulCreate")
    about = {"involvedObject.name": name, "reason": "SuccessfulCreate"}
    selector = ",".join(f"{field}={value}" for field, value in about.items())
    found = kubectl("get", "events", f"--field-selector={selector}", "-o", "jsonpath={..count}")
    return sum(map(int, found.split()))
