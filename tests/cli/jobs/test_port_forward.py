import argparse
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dlctl.cli.jobs.names import known_kinds, parse_replica
from dlctl.cli.jobs.port_forward import EndedError, PortPair, not_ready_reason, pod_of
from dlctl.errors import ConfigError
from tests.builders import KINDS, NOW
from tests.cli.jobs.live_jobs import command_job, create_jobs, until
from tests.cli.jobs.outcomes import (
    Situation,
    crash_loop,
    launcher_waits,
    snapshot,
    succeeded,
    suspended,
    unschedulable,
)
from tests.support.command_line import Dlctl

SERVER = """
import os, socket
with socket.create_server(("", int(os.environ["MASTER_PORT"]))) as server:
    print("listening")
    while True:
        connection, _ = server.accept()
        connection.sendall(connection.recv(100).upper())
        connection.close()
"""


@pytest.mark.parametrize(
    ("text", "pair"), [("80", (80, 80)), ("8080:80", (8080, 80)), (":80", (0, 80))]
)
def test_ports_are_written_as_for_kubectl(text: str, pair: tuple[int, int]) -> None:
    parsed = PortPair.parse(text)
    assert (parsed.local, parsed.remote) == pair


@pytest.mark.parametrize("text", ["", "x", "80:", "1:2:3", "0", "65536", "65536:80"])
def test_wrong_ports_are_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        PortPair.parse(text)


def test_name_after_its_kind_is_no_port() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="a job of a kind as KIND/NAME"):
        PortPair.parse("slow")


@pytest.mark.parametrize(
    ("text", "name", "replica"),
    [
        ("sum", "sum", ""),
        ("pytorchjob/sum", "sum", ""),
        ("sum/worker-1", "sum", "worker-1"),
        ("pytorchjob/sum/worker-1", "sum", "worker-1"),
    ],
)
def test_replica_stands_after_the_job(text: str, name: str, replica: str) -> None:
    job, chosen = parse_replica(text, known_kinds(KINDS))
    assert (job.name, chosen) == (name, replica)


def test_chief_is_the_default_and_other_replicas_are_named() -> None:
    assert pod_of(snapshot(), "").name == "sum-master-0"
    assert pod_of(snapshot(), "worker-1").name == "sum-worker-1"
    with pytest.raises(ConfigError, match="no replica worker-2; it has master-0, worker-0"):
        pod_of(snapshot(), "worker-2")


def test_launcher_of_a_batch_job_is_found_by_its_pod() -> None:
    situation = launcher_waits()
    assert pod_of(situation.job, "", situation.pods).name == "sum-launcher-x7k2p"


def trouble(situation: Situation) -> str:
    key = pod_of(situation.job, "", situation.pods)
    return not_ready_reason(situation.job, key, situation.pods, NOW)


def test_pod_that_does_not_run_says_why() -> None:
    assert trouble(unschedulable()) == (
        "pod sum-master-0 is Pending; master-0, worker-0, worker-1 (3 of 3 replicas) wait: no node "
        "fits: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu; connections fail until it "
        "runs"
    )
    assert trouble(suspended()) == (
        "there is no pod sum-master-0; the job is suspended: `dlctl resume pytorchjob/sum` starts "
        "it; connections fail until it runs"
    )
    assert trouble(crash_loop()) == ""


def test_pod_of_a_job_that_has_ended_is_an_error() -> None:
    with pytest.raises(EndedError, match="no pod sum-master-0, and pytorchjob/sum has ended: Suc"):
        trouble(succeeded())


@pytest.mark.slow
def test_port_of_a_replica_can_be_reached(dlctl: Dlctl, kubeconfig: Path) -> None:
    access = ("--kubeconfig", str(kubeconfig))
    create_jobs(kubeconfig, command_job("PyTorchJob", "server", SERVER, Master=1))
    until(lambda: dlctl("logs", *access, "server"), out="listening")
    command = [sys.executable, "-m", "dlctl", "port-forward", *access, "server", ":23456"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        here, _, there = process.stdout.readline().partition(" -> ")
        assert there == "server-master-0:23456\n"
        host, _, port = here.rpartition(":")
        for _ in range(2):
            with socket.create_connection((host, int(port)), timeout=10) as client:
                client.sendall(b"hello")
                assert client.recv(100) == b"HELLO"
                assert client.recv(100) == b""
        process.terminate()
