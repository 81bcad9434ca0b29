"""MPIJobs of v2beta1 in real containers: MPI over ssh, retries, suspension, scaling.

All jobs run at the same time; each test looks at one of them.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial

import pytest

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl, KubectlError
from e2e.suite import mpi
from e2e.suite.kubeflow import true_conditions
from e2e.suite.namespaces import own_namespace

EXAMPLES = ("pi", "pi-nonroot", "pi-mpich")
MPIRUN = "mpirun --bind-to none -np"
RANK = f"sh -c 'echo rank on $(hostname); {mpi.AWAIT_GO}'"
# Each time, hosts and the program that lists them follow the number of workers.
SCALED = f"""
for count in 2 4 3; do
  until [ "$(/etc/mpi/discover_hosts.sh | wc -l)" -eq $count ]; do sleep 0.2; done
  until {MPIRUN} $count hostname; do sleep 1; done
  echo done with $count
done
"""

pytestmark = pytest.mark.skipif(not mpi.IMAGE, reason="E2E_MPI_IMAGE is empty")


@pytest.fixture(scope="module")
def submitted(cluster: Kubectl, controller: Kubectl) -> Iterator[Kubectl]:
    """A namespace with all jobs."""
    suspended: JSON = {"runPolicy": {"suspend": True}}
    ready: JSON = {"launcherCreationPolicy": "WaitForWorkersReady"}
    # The API server makes one of two dollars.
    segfault = f"{MPIRUN} 2 sh -c 'kill -SEGV $$$$'"
    with own_namespace(cluster) as kubectl:
        kubectl.apply(
            *map(mpi.example, EXAMPLES),
            mpi.job("scaled", SCALED, **ready),
            mpi.job("retried", f"{MPIRUN} 2 {RANK}"),
            mpi.job("crashed", segfault, runPolicy={"backoffLimit": 0}, **ready),
            mpi.job_of_mpiuser("paused", f"{mpi.AWAIT_GO}; {MPIRUN} 2 id -un", **suspended),
        )
        yield kubectl


@pytest.mark.parametrize("name", EXAMPLES)
def test_ranks_run_on_the_workers(name: str, namespace: Kubectl) -> None:
    # With time for retries of the launcher, as when a name resolves late.
    status = mpi.reached(namespace, name, "Succeeded", within_s=240)
    assert status["completionTime"]
    said = mpi.launcher_says(namespace, name)
    hosts = [line.split(" on ")[1] for line in said.splitlines() if line.startswith("rank ")]
    assert sorted(hosts) == [f"{name}-worker-{index}" for index in range(3)]
    assert "pi is 3.14159" in said
    namespace("wait", "--for=condition=complete", f"job/{name}-launcher", "--timeout=5s")


def test_crash_of_a_rank_is_in_the_condition(namespace: Kubectl) -> None:
    status = mpi.reached(namespace, "crashed", "Failed")
    (condition,) = [c for c in status["conditions"] if c["type"] == "Failed"]
    assert condition["reason"].startswith("BackoffLimitExceeded")
    assert "SIGSEGV" in condition["message"]


def test_hosts_follow_the_number_of_workers(namespace: Kubectl) -> None:
    mpi.until_said(namespace, "scaled", "done with 2")
    workers = mpi.pods(namespace, "scaled", "worker")
    launcher = namespace.get("job", "scaled-launcher")
    assert launcher
    created = datetime.fromisoformat(launcher["metadata"]["creationTimestamp"])
    assert all(ready_at(pod) <= created for pod in workers)
    for count in (4, 3):
        mpi.patch(
            namespace, "scaled", f'{{"mpiReplicaSpecs": {{"Worker": {{"replicas": {count}}}}}}}'
        )
        has_hosts = partial(has_workers_and_hosts, namespace, "scaled", count)
        namespace.until(has_hosts, within_s=60, what=f"{count} workers and hosts")
        # The kubelet looks at volumes when a pod changes, and every minute or so.
        (launcher_pod,) = mpi.names(mpi.pods(namespace, "scaled", "launcher"))
        namespace("annotate", "pod", launcher_pod, f"e2e/workers={count}", "--overwrite")
        mpi.until_said(namespace, "scaled", f"done with {count}")
    mpi.reached(namespace, "scaled", "Succeeded")


def test_launcher_is_retried_with_the_replacement_of_a_killed_worker(namespace: Kubectl) -> None:
    mpi.until_said(namespace, "retried", "rank on retried-worker-", 2)
    stays, killed = (uid(namespace, f"retried-worker-{index}") for index in (0, 1))
    # sshd is the first process, and succeeds after SIGTERM.
    namespace("exec", "retried-worker-1", "--", "sh", "-c", "kill -QUIT 1")
    replaced = namespace.until(
        lambda: running(namespace, "retried-worker-1", but=killed),
        within_s=60,
        what="another worker",
    )
    assert replaced
    failures = namespace.until(
        lambda: ((namespace.get("job", "retried-launcher") or {}).get("status") or {}).get(
            "failed"
        ),
        within_s=60,
        what="a failed launcher",
    )
    assert failures >= 1
    mpi.until_said(namespace, "retried", "rank on retried-worker-", 2)
    for index in (0, 1):
        namespace("exec", f"retried-worker-{index}", "--", "touch", "/tmp/go")
    status = mpi.reached(namespace, "retried", "Succeeded")
    assert status["replicaStatuses"]["Launcher"]["succeeded"] == 1
    assert status["replicaStatuses"]["Launcher"]["failed"] >= 1
    assert uid(namespace, "retried-worker-0") == stays


def test_suspended_job_has_no_pods_and_runs_when_it_is_resumed(namespace: Kubectl) -> None:
    status = mpi.reached(namespace, "paused", "Suspended")
    assert "startTime" not in status
    for resource, name in (("service", ""), ("configmap", "-config"), ("secret", "-ssh")):
        assert namespace.get(resource, f"paused{name}")
    is_without_pods(namespace)
    mpi.patch(namespace, "paused", '{"runPolicy": {"suspend": false}}')
    mpi.reached(namespace, "paused", "Running")

    mpi.patch(namespace, "paused", '{"runPolicy": {"suspend": true}}')
    mpi.reached(namespace, "paused", "Suspended")
    is_without_pods(namespace)
    mpi.patch(namespace, "paused", '{"runPolicy": {"suspend": false}}')
    mpi.reached(namespace, "paused", "Running")
    namespace.until(
        lambda: let_go_on(namespace, "paused"), within_s=240, what="paused to be Succeeded"
    )
    assert mpi.launcher_says(namespace, "paused").splitlines()[-2:] == ["mpiuser"] * 2


def let_go_on(kubectl: Kubectl, name: str) -> bool:
    """Let the launcher go on, also when it is retried; return whether the job has succeeded."""
    for launcher in mpi.names(mpi.pods(kubectl, name, "launcher")):
        # A restarted container has lost the file, one that has ended takes none.
        with suppress(KubectlError):
            kubectl("exec", launcher, "--", "touch", "/tmp/go")
    return "Succeeded" in true_conditions(mpi.status(kubectl, name))


def is_without_pods(kubectl: Kubectl) -> None:
    def probe() -> bool:
        found = kubectl.get("job", "paused-launcher") or {"spec": {}}
        pods = [*mpi.pods(kubectl, "paused", "launcher"), *mpi.pods(kubectl, "paused", "worker")]
        return bool(found["spec"].get("suspend")) and not pods

    kubectl.until(probe, within_s=60, what="a suspended Job, and no pods")


def ready_at(pod: JSON) -> datetime:
    (ready,) = [c for c in pod["status"]["conditions"] if c["type"] == "Ready"]
    assert ready["status"] == "True"
    return datetime.fromisoformat(ready["lastTransitionTime"])


def has_workers_and_hosts(kubectl: Kubectl, name: str, count: int) -> bool:
    expected = [f"{name}-worker-{index}" for index in range(count)]
    found = kubectl.get("configmap", f"{name}-config") or {"data": {"hostfile": ""}}
    hosts = [line.split(".")[0] for line in found["data"]["hostfile"].splitlines()]
    return mpi.names(mpi.pods(kubectl, name, "worker")) == expected == hosts


def uid(kubectl: Kubectl, pod: str) -> str:
    found = kubectl.get("pod", pod)
    assert found
    value: str = found["metadata"]["uid"]
    return value


def running(kubectl: Kubectl, pod: str, *, but: str) -> bool:
    """Return whether a pod of this name runs that is not the former one."""
    found = kubectl.get("pod", pod)
    return bool(found and found["metadata"]["uid"] != but and found["status"]["phase"] == "Running")
