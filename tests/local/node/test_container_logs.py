"""Logs through the API server, as kubectl asks for them."""

import asyncio

import pytest

from dlctl.api.meta import PODS
from dlctl.kube.errors import ApiError
from tests.local.node.builders import make_container
from tests.local.node.lab import Lab

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_log_may_be_cut_to_its_last_lines(lab: Lab) -> None:
    await lab.run("tail", command=["seq", "5"])
    assert await lab.log("tail", tailLines="2") == "4\n5\n"
    assert await lab.log("tail", limitBytes="3") == "1\n2"


async def test_log_holds_both_output_streams_in_their_order(lab: Lab) -> None:
    await lab.run("both", command=["sh", "-c", "echo a; echo b >&2; echo c"])
    assert await lab.log("both") == "a\nb\nc\n"


async def test_log_of_the_start_before_is_kept(lab: Lab) -> None:
    script = "echo start $(cat /room/n); echo again >>/room/n; test $(wc -l </room/n) = 2"
    await lab.run(
        "previous",
        restartPolicy="OnFailure",
        volumes=[{"name": "room", "emptyDir": {}}],
        containers=[
            make_container(
                command=["sh", "-c", script],
                volumeMounts=[{"name": "room", "mountPath": "/room"}],
            )
        ],
    )
    assert await lab.log("previous") == "start again\n"
    assert (await lab.log("previous", previous="true")).splitlines()[-1] == "start"


async def test_followed_log_comes_as_it_is_written_and_ends_with_the_container(lab: Lab) -> None:
    script = "echo first; until test -e go; do sleep 0.01; done; echo last"
    await lab.start("follow", command=["sh", "-c", script])
    await lab.until("follow", lambda status: status["phase"] == "Running")
    uid = lab.uid("follow")
    work = lab.cluster.run_dir / "pods" / uid / "work"
    path, seen = PODS.path("default", "follow", "log"), b""
    async with asyncio.timeout(10), lab.client.stream(path, {"follow": "true"}) as chunks:
        async for chunk in chunks:
            seen += chunk
            if seen == b"first\n":
                await asyncio.to_thread((work / "go").touch)
    assert seen == b"first\nlast\n"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "waiting to start"),
        ({"previous": "true"}, "previous terminated container"),
    ],
    ids=["not started", "no start before"],
)
async def test_log_that_is_not_to_be_had_is_refused_with_the_reason(
    lab: Lab, params: dict[str, str], message: str
) -> None:
    name = f"waiting-{len(params)}"
    await lab.start(name, containers=[{"name": "main", "image": "unknown"}])
    await lab.until(name, lambda status: "CreateContainerConfigError" in str(status))
    with pytest.raises(ApiError, match=message):
        await lab.log(name, **params)
