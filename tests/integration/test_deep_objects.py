"""Deeply nested objects affect neither the controller nor other jobs."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import aiohttp
import msgspec
import pytest

from dlctl.api.meta import Resource
from tests.builders import bare_job, kind_of, mxjob, training_job
from tests.dialects.et_operator.manifests import elastic_job
from tests.support.harness import ClusterHarness, StartCluster

HELD = "HELD"
# Beyond Python's default recursion limit, and up to the maximum; a page adds further levels.
LEVELS = [100, 1_500, 9_900]


def deep(wire: dict[str, Any], levels: int) -> bytes:
    """Return the JSON of a manifest with brackets instead of ``HELD``."""
    return msgspec.json.encode(wire).replace(f'"{HELD}"'.encode(), b"[" * levels + b"]" * levels)


async def post(cluster: ClusterHarness, resource: Resource, body: bytes) -> None:
    """Create an object from bytes: our client cannot encode such deep nesting."""
    config = cluster.server.config()
    access = await config.credentials.access()
    url = f"{config.server}{resource.path(cluster.namespace)}"
    headers = {**access.headers, "Content-Type": "application/json"}
    async with aiohttp.ClientSession() as session:
        async with session.post(url, data=body, headers=headers, ssl=access.tls or True) as answer:
            assert answer.status == 201, (await answer.read())[:1000]


def deep_job(name: str, levels: int) -> bytes:
    wire = mxjob(name=name)
    wire["metadata"] = {"name": name}
    wire["spec"]["replicaSpecs"][2]["template"]["spec"]["x"] = HELD
    return deep(wire, levels)


@pytest.mark.parametrize("levels", LEVELS)
async def test_deeply_nested_job_is_rejected_and_others_run(
    start_cluster: StartCluster, levels: int
) -> None:
    kind = kind_of()
    async with start_cluster(kinds=[kind]) as cluster:
        await post(cluster, kind.resource, deep_job("before", levels))
        cluster.start()
        await post(cluster, kind.resource, deep_job("after", levels))
        await cluster.submit(mxjob(), {})
        await cluster.ended()
        for name in ("before", "after"):
            await cluster.until(partial(cluster.condition, "Failed", name))
            said = "spec: is nested deeper than 64 levels"
            assert said in cluster.condition("Failed", name)
            assert said in cluster.events(name)["MXJobInvalid"]
        # After its restart they are in the initial list.
        await cluster.kill_all()
        cluster.start()
        await cluster.submit(mxjob(name="next"), {})
        await cluster.ended("next")


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(training_job("PyTorchJob", "deep", Worker=2), id="map"),
        pytest.param(training_job("TFJob", "deep", Worker=2), id="map and list"),
        pytest.param(bare_job("MXJob", "deep"), id="bare list"),
        pytest.param(elastic_job(name="deep"), id="elastic"),
    ],
)
async def test_deeply_nested_job_of_any_form_is_rejected(
    start_cluster: StartCluster, wire: dict[str, Any]
) -> None:
    kind = kind_of(wire["apiVersion"], wire["kind"])
    # Encoded and decoded to share nothing with other tests.
    wire = msgspec.json.decode(msgspec.json.encode({**wire, "metadata": {"name": "deep"}}))
    templates = list(pod_templates(wire["spec"]))
    templates[0]["x"] = HELD
    async with start_cluster(kinds=[kind]) as cluster:
        cluster.start()
        await post(cluster, kind.resource, deep(wire, 1_500))
        await cluster.until(lambda: "nested deeper" in str(cluster.events("deep")))


def pod_templates(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the specs of the pods in a job's spec."""
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict) and "containers" in item:
            yield item
        elif isinstance(item, dict | list):
            yield from pod_templates(item)
