"""Templates and pods with more labels, finalizers, gates or containers than are kept in memory."""

import itertools
from typing import Any, Final

import pytest

from dlctl.api.meta import MAX_ITEMS, PODS
from dlctl.dialects.pods import pod_templates
from dlctl.dialects.pods.pod_templates import MAX_BYTES
from tests.builders import training_job
from tests.integration.kubeflow import job_of, only
from tests.support.harness import StartCluster

_COUNT: Final = pod_templates.MAX_ITEMS + 1
_TRAINING: Final = [{"name": "pytorch", "image": "x"}]
_CONTAINERS: Final = [{"name": f"c{number}", "image": "x"} for number in range(_COUNT)]


async def rejection(start_cluster: StartCluster, part: str, name: str, items: Any) -> str:
    """Return why a job fails without any pod, given what a part of its template has."""
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1})
        template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
        template[part] = {**template.get(part, {}), name: items}
        await cluster.submit(job)
        await cluster.until(lambda: cluster.condition("Failed"))
        assert not cluster.pods()
        return cluster.condition("Failed")


@pytest.mark.parametrize(
    ("part", "name", "items"),
    [
        pytest.param("metadata", "labels", {f"k{n}": "v" for n in range(_COUNT)}, id="labels"),
        pytest.param("metadata", "finalizers", [f"a.b/k{n}" for n in range(_COUNT)], id="last"),
        pytest.param("spec", "containers", _TRAINING + _CONTAINERS[1:], id="containers"),
        pytest.param("spec", "initContainers", _CONTAINERS, id="init containers"),
        pytest.param(
            "spec", "schedulingGates", [{"name": f"a.b/k{n}"} for n in range(_COUNT)], id="gates"
        ),
    ],
)
async def test_template_with_too_many_parts_is_rejected(
    start_cluster: StartCluster, part: str, name: str, items: Any
) -> None:
    text = f"template.{part}.{name}: has {_COUNT} items: use at most {_COUNT - 1}"
    assert text in await rejection(start_cluster, part, name, items)


_LONG: Final = {f"{number:0250}/{'k' * 63}": "v" for number in range(28)}


@pytest.mark.parametrize(
    ("part", "name", "items", "text"),
    [
        pytest.param("metadata", "labels", _LONG, "labels and finalizers", id="labels"),
        pytest.param("metadata", "finalizers", list(_LONG), "labels and finalizers", id="last"),
        pytest.param("spec", "nodeSelector", _LONG, "nodeSelector", id="node selector"),
    ],
)
async def test_template_with_too_much_text_is_rejected(
    start_cluster: StartCluster, part: str, name: str, items: Any, text: str
) -> None:
    found = await rejection(start_cluster, part, name, items)
    assert f"bytes of {text}: use at most {MAX_BYTES:,}" in found


async def test_pods_of_the_longest_labels_run(start_cluster: StartCluster) -> None:
    labels = dict(itertools.islice(_LONG.items(), MAX_BYTES // 330))
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1})
        job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["metadata"] = {"labels": labels}
        await cluster.submit(job)
        await cluster.until(lambda: cluster.phase() == "Running")


async def test_pods_with_too_many_labels_do_not_affect_a_job(start_cluster: StartCluster) -> None:
    labels = {f"k{number}": "v" for number in range(MAX_ITEMS + 1)}
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        running = cluster.start()
        for name in ("before", "after"):
            spec = {
                "containers": [{"name": "a", "image": "x"}],
                "schedulingGates": [{"name": "example.com/held"}],
            }
            metadata = {"name": name, "labels": {**labels, "dlctl.dev/managed-by": "dlctl"}}
            await cluster.user.create(
                PODS, cluster.namespace, {"metadata": metadata, "spec": spec}, dict
            )
            await cluster.submit(training_job("PyTorchJob", name, Master=1), {})
            await cluster.ended(name)
        informers = running.manager._parts.informers
        assert {pod.metadata.name for pod in informers.pods.store} <= {
            "before-master-0",
            "after-master-0",
        }
