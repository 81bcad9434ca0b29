"""kubeflow-training as its users call it, on an embedded cluster with real processes and logs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from kubeflow.training import TrainingClient
from kubernetes.client import CoreV1Api
from kubernetes.config import new_client_from_config

from tests.sdk.jobs import IMAGE, KINDS, client_of, job, manifest, master, suspend

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(120)]
STARTUP_S = 30


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An embedded cluster, and an image with Python and a fake torchrun."""
    folder = tmp_path_factory.mktemp("sdk")
    programs = folder / "image" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "torchrun"):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (programs / name).chmod(0o755)
    path = folder / "kubeconfig"
    up = ["up", "--kubeconfig", str(path), "--image", f"{IMAGE}={programs.parent}"]
    with subprocess.Popen(
        [sys.executable, "-m", "dlctl", *up],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield path
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STARTUP_S)


def test_official_client_reads_the_node(kubeconfig: Path) -> None:
    with new_client_from_config(str(kubeconfig)) as client:
        [node] = CoreV1Api(client).list_node().items
    assert node.status.node_info.operating_system == "linux"


def until(probe: Callable[[], object]) -> None:
    deadline = time.monotonic() + STARTUP_S
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_job_is_created_watched_and_deleted(kind: str, kubeconfig: Path, tmp_path: Path) -> None:
    client, name = client_of(kind, kubeconfig), f"runs-{kind.lower()}"
    told = tmp_path / "end"
    runs = ("sh", "-c", f"echo begun; until test -e {told}; do sleep 0.1; done; echo ended")
    client.create_job(job(client, manifest(kind, name, runs)))
    running = client.wait_for_job_conditions(
        name, expected_conditions={"Running"}, wait_timeout=60, polling_interval=0.2
    )
    assert running.status.start_time
    assert client.is_job_created(name)
    assert client.is_job_running(name)
    assert not client.is_job_failed(name)
    assert not client.is_job_restarting(name)
    assert name in [one.metadata.name for one in client.list_jobs()]

    names = client.get_job_pod_names(name)
    assert len(names) == len(client.get_job_pods(name)) == sum(KINDS[kind].values())
    assert client.get_job_pod_names(name, is_master=True) == [master(kind, name)]
    workers = client.get_job_pod_names(name, replica_type="worker")
    assert len(workers) == KINDS[kind]["Worker"]
    assert client.get_job_pod_names(name, replica_type="worker", replica_index=0) == [
        f"{name}-worker-0"
    ]

    told.touch()
    logs, _ = client.get_job_logs(name, follow=True)
    assert logs == {master(kind, name): "begunended"}
    client.wait_for_job_conditions(name, wait_timeout=60, polling_interval=0.2)
    assert client.is_job_succeeded(name)
    assert client.get_job(name).status.completion_time
    logs, events = client.get_job_logs(name, verbose=True)
    assert logs == {master(kind, name): "begun\nended\n"}
    assert any("Created pod" in line for line in events[f"{kind.lower()}/{name}"])

    client.delete_job(name)
    until(lambda: not client.get_job_pods(name))
    with pytest.raises(RuntimeError, match=f"Failed to get {kind}"):
        client.get_job(name)


@pytest.mark.parametrize("kind", KINDS)
def test_failures_and_restarts_are_observed(kind: str, kubeconfig: Path) -> None:
    client = client_of(kind, kubeconfig)
    for name, code in (("broken", 1), ("killed", 137)):
        command = ("sh", "-c", f"sleep 0.5; exit {code}")
        wire = manifest(kind, f"{name}-{kind.lower()}", command, policy="ExitCode")
        client.create_job(job(client, wire))
    client.wait_for_job_conditions(
        f"killed-{kind.lower()}",
        expected_conditions={"Restarting"},
        wait_timeout=60,
        polling_interval=0.2,
    )
    assert client.is_job_restarting(f"killed-{kind.lower()}")
    with pytest.raises(RuntimeError, match="is Failed"):
        client.wait_for_job_conditions(
            f"broken-{kind.lower()}", wait_timeout=60, polling_interval=0.2
        )
    assert client.is_job_failed(f"broken-{kind.lower()}")
    for name in ("broken", "killed"):
        client.delete_job(f"{name}-{kind.lower()}")


@pytest.mark.parametrize("kind", KINDS)
def test_job_is_updated(kind: str, kubeconfig: Path) -> None:
    client, name = client_of(kind, kubeconfig), f"paused-{kind.lower()}"
    client.create_job(job(client, manifest(kind, name, ("sleep", "100"))))
    until(lambda: client.is_job_running(name))
    until(partial(suspend, client, name, True))
    until(lambda: not client.get_job_pods(name))
    until(lambda: client.get_job_conditions(name)[-1].type == "Suspended")
    client.delete_job(name)


def train(parameters: dict[str, str]) -> None:
    import os

    print("trains with", parameters["rate"], "as", os.environ["HOSTNAME"])  # noqa: T201


@pytest.mark.parametrize(
    ("kind", "counts", "pods"),
    [
        pytest.param("PyTorchJob", {"num_workers": 1}, ["master-0"], id="PyTorchJob-1"),
        pytest.param("PyTorchJob", {"num_workers": 2}, ["master-0", "worker-0"], id="PyTorchJob-2"),
        pytest.param(
            "TFJob", {"num_workers": 2, "num_ps_replicas": 1}, ["ps-0", "worker-0", "worker-1"]
        ),
        pytest.param("TFJob", {"num_workers": 1, "num_chief_replicas": 1}, ["chief-0", "worker-0"]),
    ],
)
def test_job_is_created_from_a_function(
    kind: str, counts: dict[str, int], pods: list[str], kubeconfig: Path
) -> None:
    client, name = client_of(kind, kubeconfig), "-".join([kind.lower(), *map(str, counts.values())])
    client.create_job(
        name=name, train_func=train, parameters={"rate": "0.1"}, base_image=IMAGE, **counts
    )
    assert client.wait_for_job_conditions(name, wait_timeout=60, polling_interval=0.2)
    assert sorted(client.get_job_pod_names(name)) == [f"{name}-{pod}" for pod in pods]
    # Others may not have started yet: the job ends when its master succeeds.
    first = f"{name}-{pods[0]}"
    until(lambda: log_of(client, name, first))
    assert log_of(client, name, first).startswith("trains with 0.1 as ")
    client.delete_job(name)


def log_of(client: TrainingClient, name: str, pod: str) -> str:
    logs, _ = client.get_job_logs(name, is_master=False)
    return str(logs.get(pod, ""))
