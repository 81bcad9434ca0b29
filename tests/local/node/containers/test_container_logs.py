"""Logs through the API server, as kubectl requests them."""

import asyncio
import datetime

import pytest

from dlctl.api.meta import PODS
from dlctl.kube.errors import ApiError
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness, container

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_log_can_be_limited_to_its_last_lines(harness: NodeHarness) -> None:
    await harness.run("tail", command=["seq", "5"])
    assert await harness.log("tail", tailLines="2") == "4\n5\n"
    assert await harness.log("tail", limitBytes="3") == "1\n2"


async def test_log_holds_both_output_streams_in_their_order(harness: NodeHarness) -> None:
    await harness.run("both", command=["sh", "-c", "echo a; echo b >&2; echo c"])
    assert await harness.log("both") == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("script", "log"),
    [
        pytest.param(
            "echo a; echo b >/dev/stderr; echo c | tee /dev/stdout; echo d",
            "a\nb\nc\nc\nd\n",
            id="opened by name",
        ),
        pytest.param("echo a; exec >&- 2>&-; sleep 0.1", "a\n", id="closed"),
        pytest.param("sleep 300 & echo a", "a\n", id="left to a background process"),
        pytest.param("seq 200000", "".join(f"{n + 1}\n" for n in range(200000)), id="long"),
    ],
)
async def test_log_keeps_what_a_program_has_written(
    harness: NodeHarness, script: str, log: str, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id.replace(" ", "-")
    status = await harness.run(name, command=["sh", "-c", script])
    assert container(status)["state"]["terminated"]["exitCode"] == 0
    assert await harness.log(name) == log


async def test_lines_have_the_times_at_which_they_were_written(harness: NodeHarness) -> None:
    script = "echo first; until test -e go; do sleep 0.01; done; printf 'half\\nlast'"
    await harness.start("timed", command=["sh", "-c", script])
    await harness.until("timed", lambda status: status["phase"] == "Running")
    assert await harness.first_line("timed") == "first"
    # The clocks of this test and of the node are the same. The node notices a line a little late.
    between = datetime.datetime.now(datetime.UTC)
    while await harness.log("timed", sinceTime=between.isoformat()):
        between = datetime.datetime.now(datetime.UTC)
    work = harness.cluster.run_dir / "pods" / harness.uid("timed") / "work"
    await asyncio.to_thread((work / "go").touch)
    status = await harness.finished("timed")

    lines = (await harness.log("timed", timestamps="true")).splitlines()
    times, texts = zip(*(line.split(" ", 1) for line in lines), strict=True)
    assert texts == ("first", "half", "last")
    first, half, last = (datetime.datetime.fromisoformat(time) for time in times)
    started = container(status)["state"]["terminated"]["startedAt"]
    assert datetime.datetime.fromisoformat(started) <= first
    assert first <= between <= half <= last
    assert await harness.log("timed", sinceTime=between.isoformat()) == "half\nlast"
    assert await harness.log("timed", sinceSeconds="3600") == "first\nhalf\nlast"
    assert await harness.log("timed", sinceSeconds="3600", tailLines="1") == "last"
    limited = await harness.log("timed", timestamps="true", limitBytes="5")
    assert limited == times[0][:5]


async def test_log_of_the_previous_run_is_kept(harness: NodeHarness) -> None:
    script = "echo start $(cat /room/n); echo again >>/room/n; test $(wc -l </room/n) = 2"
    await harness.run(
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
    assert await harness.log("previous") == "start again\n"
    assert (await harness.log("previous", previous="true")).splitlines()[-1] == "start"


async def test_followed_log_is_streamed_and_ends_with_the_container(
    harness: NodeHarness,
) -> None:
    script = "echo first; until test -e go; do sleep 0.01; done; echo last"
    await harness.start("follow", command=["sh", "-c", script])
    await harness.until("follow", lambda status: status["phase"] == "Running")
    uid = harness.uid("follow")
    work = harness.cluster.run_dir / "pods" / uid / "work"
    path, seen = PODS.path("default", "follow", "log"), b""
    async with asyncio.timeout(10), harness.client.stream(path, {"follow": "true"}) as chunks:
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
async def test_unavailable_log_is_rejected_with_the_reason(
    harness: NodeHarness, params: dict[str, str], message: str
) -> None:
    name = f"waiting-{len(params)}"
    await harness.start(name, containers=[{"name": "main", "image": "unknown"}])
    await harness.until(name, lambda status: "CreateContainerConfigError" in str(status))
    with pytest.raises(ApiError, match=message):
        await harness.log(name, **params)
