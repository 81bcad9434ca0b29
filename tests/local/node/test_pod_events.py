"""The events of a pod, as ``kubectl describe pod`` shows them."""

import asyncio

import msgspec
import pytest

from dlctl.api.meta import EVENTS
from dlctl.cli.jobs.job_events import JobEvent
from dlctl.clock import SystemClock
from dlctl.kube.client import Client
from dlctl.local.node.pod_events import PodEvents
from tests.local.node.builders import make_container, make_pod
from tests.local.node.harness import NodeHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def reasons(client: Client, pod: str, kind: str = "Normal") -> list[str]:
    page = await client.list(EVENTS, JobEvent, namespace="default")
    about = [event for event in page.items if event.involved_object.name == pod]
    return sorted(event.reason for event in about if event.type == kind)


async def test_pod_is_scheduled_pulled_created_and_started(harness: NodeHarness) -> None:
    await harness.run("simple")
    await harness.event("Started container main", pod="simple")
    seen = await reasons(harness.client, "simple")
    assert seen == ["Created", "Pulled", "Scheduled", "Started"]


async def test_each_container_has_its_own_events(harness: NodeHarness) -> None:
    first = make_container("first")
    await harness.run("two", initContainers=[first], containers=[make_container("second")])
    await harness.event("Started container first", pod="two")
    await harness.event("Started container second", pod="two")


async def test_deleted_pod_is_killed(harness: NodeHarness) -> None:
    await harness.start("killed", command=["sleep", "60"], terminationGracePeriodSeconds=1)
    await harness.until("killed", lambda status: status.get("phase") == "Running")
    await harness.delete("killed")
    await harness.event("Stopping container main", pod="killed")
    await harness.gone("killed")


async def test_container_that_fails_its_liveness_probe_is_killed(harness: NodeHarness) -> None:
    probe = {"exec": {"command": ["false"]}, "failureThreshold": 1, "periodSeconds": 1}
    main = make_container(command=["sleep", "60"], livenessProbe=probe)
    await harness.start("unhealthy", containers=[main], terminationGracePeriodSeconds=0)
    await harness.event("Container main failed liveness probe", pod="unhealthy")
    await harness.finished("unhealthy")


async def test_pod_with_a_long_name_has_events(harness: NodeHarness) -> None:
    events, pod = PodEvents(harness.client, {}, SystemClock()), make_pod("x" * 253)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(events.run())
        events.warn(pod, "Failed", "the name is long")
        await harness.event("the name is long", pod="x" * 253)
        running.cancel()


async def test_event_in_a_namespace_that_is_gone_is_no_warning(
    harness: NodeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    events, here = PodEvents(harness.client, {}, SystemClock()), make_pod("here")
    gone = msgspec.structs.replace(
        here, metadata=msgspec.structs.replace(here.metadata, namespace="gone")
    )
    writing = asyncio.create_task(events.run())
    events.warn(gone, "Failed", "there")
    events.warn(here, "Failed", "written in order")
    await harness.event("written in order", pod="here")
    writing.cancel()
    assert "event of a pod not written" not in caplog.messages


async def test_container_that_restarts_backs_off(harness: NodeHarness) -> None:
    await harness.start("looping", command=["false"], restartPolicy="Always")
    await harness.event("Back-off restarting failed container main in pod looping", pod="looping")
    await harness.delete("looping")


async def test_program_that_does_not_exist_is_a_failure(harness: NodeHarness) -> None:
    await harness.run("absent", command=["/no/such/program"])
    await harness.event("Error: ", pod="absent")
    assert await reasons(harness.client, "absent", "Warning") == ["Failed"]


async def test_grpc_probe_is_reported_as_unsupported(harness: NodeHarness) -> None:
    main = make_container(command=["sleep", "60"], readinessProbe={"grpc": {"port": 1}})
    await harness.start("grpc", containers=[main], terminationGracePeriodSeconds=0)
    await harness.event("Readiness probe of container main: gRPC", pod="grpc")
    await harness.delete("grpc")
