"""The framework and the dialect that the pages build, on a cluster."""

from pathlib import Path

import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import served_kinds
from tests.docs.pages import ROOT, blocks
from tests.support.fake_pods import replica_of
from tests.support.harness import ClusterHarness, start_cluster

pytestmark = pytest.mark.looptime(noop_cycles=8)


def page(name: str, language: str) -> str:
    (text,) = (
        one.text for one in blocks(ROOT / "docs" / "extend" / name) if one.language == language
    )
    return text


def definitions(name: str) -> JSON:
    """Return the definitions in the Python blocks of a page."""
    namespace: JSON = {"__name__": Path(name).stem}
    exec(compile(page(name, "python"), name, "exec"), namespace)
    return namespace


def env(cluster: ClusterHarness, replica: str) -> dict[str, str]:
    names = {
        str(replica_of(pod["metadata"]["name"], "linear")): pod for pod in cluster.objects(PODS)
    }
    found = names[replica]
    variables = found["spec"]["containers"][0]["env"]
    return {one["name"]: one["value"] for one in variables}


async def run(kinds: list[Kind], manifest: JSON, replica: str) -> dict[str, str]:
    """Run a job to its end, and return the environment of one replica."""
    async with start_cluster(kinds=kinds) as cluster:
        cluster.start()
        manifest["metadata"]["name"] = "linear"
        await cluster.submit(manifest, script=None)
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        await cluster.until(lambda: len(cluster.pods()) == 3)
        found = env(cluster, replica)
        for each in cluster.objects(PODS):
            await cluster.node.finish(each["metadata"]["uid"])
        assert (await cluster.ended())["state"] == "Succeeded"
    return found


async def test_framework_of_the_page_runs() -> None:
    framework = definitions("framework.md")["RingJob"]
    kinds = [k for k in served_kinds({"RingJob": framework}) if k.resource.kind == "RingJob"]
    found = await run(kinds, yaml.safe_load(page("framework.md", "yaml")), "worker-1")
    assert (found["RING_RANK"], found["RING_SIZE"]) == ("2", "3")
    assert found["RING_MASTER"].endswith(":7000")


async def test_dialect_of_the_page_runs() -> None:
    kinds = list(definitions("dialect.md")["served_kinds"]({}))
    found = await run(kinds, yaml.safe_load(page("dialect.md", "yaml")), "worker-2")
    assert found["RING_RANK"] == "2"
    assert found["RING_FIRST"].endswith(":7000")
