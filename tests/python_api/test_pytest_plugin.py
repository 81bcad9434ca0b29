"""The plugin in a run of pytest of its own, as users have it."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import sys

import pytest

def job(script):
    container = {"name": "pytorch", "image": "any", "command": ["python3", "-c", script]}
    master = {"restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    spec = {"pytorchReplicaSpecs": {"Master": master}}
    metadata = {"name": "same"}
    kind = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    return {**kind, "metadata": metadata, "spec": spec}

def test_nothing_is_imported_before_it_is_used():
    assert "dlctl.embedded_cluster" not in sys.modules

def test_job_succeeds(dlctl_cluster):
    result = dlctl_cluster.run(job("print('hello')"))
    assert result.check().logs == {"master-0": "hello\\n"}
    assert result.namespace == dlctl_cluster.namespace

def test_job_of_the_same_name_is_another_one(dlctl_cluster):
    result = dlctl_cluster.run(job("raise SystemExit('boom')"))
    assert "boom" in result.message
    assert dlctl_cluster.kubeconfig.exists()
"""


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_users_test_their_manifests_with_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_jobs.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ndlctl_network = host\n")
    command = ("pytest", "-p", "dlctl.pytest_plugin", "-p", "no:cacheprovider", "-q")
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
