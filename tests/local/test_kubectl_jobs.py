"""The real kubectl and batch/v1 Jobs of the embedded cluster: what users type, what they see."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.node.kubelet import KubeletOptions
from tests.local.kubectl import KUBECTL, Kubectl, lines

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with EmbeddedCluster(KubeletOptions(network="host")) as cluster:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "KUBECONFIG": str(cluster.kubeconfig_path),
        }
        yield Kubectl(cluster.server, environment)


async def test_job_is_created_waited_for_and_shown(kubectl: Kubectl) -> None:
    await kubectl("create", "job", "hello", "--image=busybox", "--", "echo", "hello from the job")

    await kubectl("wait", "--for=condition=complete", "job/hello", "--timeout=15s")

    assert await kubectl("logs", "job/hello") == "hello from the job\n"
    header, row = lines(await kubectl("get", "jobs"))
    assert header == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert row[:3] == ["hello", "Complete", "1/1"]
    described = await kubectl("describe", "job", "hello")
    assert "0 Active (0 Ready) / 1 Succeeded / 0 Failed" in described
    assert "job-controller  Job completed" in described
    assert "Created pod: hello-" in described
    (pod,) = lines(await kubectl("get", "pods", "-l", "job-name=hello", "--no-headers"))
    assert pod[2] == "Completed"
    await kubectl("delete", "job", "hello")
    assert "No resources found" in await kubectl("get", "jobs,pods")


async def test_failed_job_says_why(kubectl: Kubectl) -> None:
    await kubectl.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "fails"},
            "spec": {
                "backoffLimit": 0,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 3"]}
                        ],
                    }
                },
            },
        }
    )

    await kubectl("wait", "--for=condition=failed", "job/fails", "--timeout=15s")

    said = await kubectl("describe", "job", "fails")
    assert "BackoffLimitExceeded" in said
    assert "Job has reached the specified backoff limit" in said


async def test_job_is_suspended_and_resumed(kubectl: Kubectl) -> None:
    await kubectl("create", "job", "long", "--image=busybox", "--", "sleep", "100")
    await kubectl("wait", "--for=jsonpath={.status.ready}=1", "job/long", "--timeout=15s")

    await kubectl("patch", "job", "long", "-p", '{"spec":{"suspend":true}}')
    await kubectl("wait", "--for=condition=suspended", "job/long", "--timeout=15s")

    await kubectl("wait", "--for=delete", "pod", "-l", "job-name=long", "--timeout=15s")
    await kubectl("patch", "job", "long", "-p", '{"spec":{"suspend":false}}')
    await kubectl("wait", "--for=jsonpath={.status.ready}=1", "job/long", "--timeout=15s")


async def test_job_that_this_cluster_cannot_run_is_rejected(kubectl: Kubectl) -> None:
    indexed = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "indexed"},
        "spec": {
            "completionMode": "Indexed",
            "completions": 2,
            "podFailurePolicy": {"rules": []},
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "busybox"}],
                }
            },
        },
    }
    said = await kubectl("apply", "-f", "-", stdin=indexed, code=1)
    assert "spec.completionMode: Forbidden: the embedded cluster runs NonIndexed jobs only" in said
    assert "spec.podFailurePolicy: Forbidden: the embedded cluster does not support" in said
