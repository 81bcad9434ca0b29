"""The order in which children are created, and what the failure of one means for the others."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.meta import (
    BATCH_JOBS,
    CONFIG_MAPS,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICES,
    UID,
    Object,
    ObjectKey,
    ObjectMeta,
    Resource,
)
from dlctl.controller.expectations import Expectations
from dlctl.controller.object_writer import ObjectWriter
from dlctl.kube.errors import RequestError, UnexpectedResponseError, UnreachableError
from dlctl.reconcilers.children.creation import Child, CreateResult, Creator, creation_stages
from dlctl.reconcilers.children.rejection import Rejection, RejectionCause
from tests.support.timing import ManualClock

if TYPE_CHECKING:
    from dlctl.kube.client import Client

CREATED = ObjectMeta(resource_version="1", labels={MANAGED_BY_LABEL: MANAGED_BY})


def child(resource: Resource, name: str, template: str = "") -> Child:
    return Child(resource, ObjectKey("ml", name), dict, template)


def creator_for(server: object, *, at_once: bool = False) -> Creator:
    writer = ObjectWriter(cast("Client", server), Expectations(ManualClock()))
    return Creator(writer, at_once=at_once)


def service(name: str) -> Child:
    return child(SERVICES, name)


def pod(name: str) -> Child:
    return child(PODS, name, name.split("-")[0])


NAMES = ["master-0", "worker-0", "worker-1"]
CONFIG_MAP = child(CONFIG_MAPS, "hosts")
JOB = child(BATCH_JOBS, "launcher")
CHILDREN = [JOB, *map(service, NAMES), *map(pod, NAMES), CONFIG_MAP]


def rejected(resource: Resource, names: Collection[str]) -> dict[str, Rejection]:
    return {name: Rejection(RejectionCause.FORBIDDEN, resource, "no", "no") for name in names}


def stages(rejected: Mapping[str, Rejection], *, at_once: bool = False) -> list[list[Child]]:
    return list(creation_stages(CHILDREN, rejected, at_once=at_once))


def test_services_come_before_pods_and_those_before_jobs() -> None:
    assert stages({}) == [[CONFIG_MAP], [*map(service, NAMES)], [*map(pod, NAMES)], [JOB]]


def test_few_pods_may_follow_their_services_at_once() -> None:
    together = [*map(service, NAMES), *map(pod, NAMES)]
    assert stages({}, at_once=True) == [[CONFIG_MAP], together, [JOB]]
    for resource in (SERVICES, PODS):
        once_rejected = rejected(resource, ["worker-0"])
        assert stages(once_rejected, at_once=True) == stages(once_rejected)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_pod_of_each_template_comes_before_many_others(at_once: bool) -> None:
    workers = [pod(f"worker-{n}") for n in range(8)]
    created = [service("worker-0"), pod("master-0"), *workers]
    first = [pod("master-0"), workers[0]]
    staged = list(creation_stages(created, {}, at_once=at_once))
    assert staged == [[service("worker-0")], first, workers[1:]]


def test_bindings_come_after_the_roles_that_they_refer_to() -> None:
    role, binding = child(ROLES, "launcher"), child(ROLE_BINDINGS, "launcher")
    staged = list(creation_stages([binding, CONFIG_MAP, role], {}, at_once=False))
    assert staged == [[CONFIG_MAP, role], [binding]]


class SlowServer:
    """Creates roles slowly, and fails for anything else."""

    def __init__(self, failure: RequestError) -> None:
        self.failure = failure
        self.created: list[str] = []
        self.failed = asyncio.Event()

    async def create(
        self, resource: Resource, namespace: str, body: Callable[[], Any], as_: type[Object]
    ) -> Object:
        if resource != ROLES:
            self.failed.set()
            raise self.failure
        await self.failed.wait()
        await asyncio.sleep(0)
        self.created.append(resource.kind)
        return Object(CREATED)


@pytest.mark.parametrize("failure", [UnreachableError("reset"), UnexpectedResponseError("a page")])
async def test_failed_create_leaves_those_that_are_on_their_way(failure: RequestError) -> None:
    server = SlowServer(failure)
    with pytest.raises(type(failure)):
        await creator_for(server).create(
            UID("u"), [child(ROLES, "launcher"), CONFIG_MAP], {}, lambda: True, {}
        )
    assert server.created == ["Role"]


class BusyServer:
    """Keeps the writes of services waiting, then renders and creates them."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.waiting_count = 0
        self.is_free = asyncio.Event()

    async def create(
        self, resource: Resource, namespace: str, body: Callable[[], Any], as_: type[Object]
    ) -> Object:
        self.waiting_count += 1
        await self.is_free.wait()
        body()
        self.created.append(resource.kind)
        return Object(CREATED)


async def test_nothing_is_created_once_the_job_is_deleted_while_its_writes_wait() -> None:
    server, current = BusyServer(), [True]
    creator = creator_for(server, at_once=True)
    async with asyncio.TaskGroup() as group:
        create = creator.create(UID("u"), CHILDREN[1:-1], {}, lambda: all(current), {})
        result = group.create_task(create)
        while server.waiting_count < 6:  # noqa: ASYNC110 - it is looked at, not signalled.
            await asyncio.sleep(0)
        current.append(False)
        server.is_free.set()
    assert server.created == []
    assert result.result() == CreateResult()


def test_rejected_child_is_tried_alone() -> None:
    assert [pod("worker-1")] in stages(rejected(PODS, ["worker-1"]))
    assert stages(rejected(SERVICES, ["worker-0", "worker-1"]))[1] == [service("worker-0")]


@given(
    names=st.sets(st.sampled_from([*NAMES, "gone-0"])),
    resource=st.sampled_from([PODS, SERVICES]),
    at_once=st.booleans(),
)
def test_each_child_is_created_once(names: set[str], resource: Resource, at_once: bool) -> None:
    planned = stages(rejected(resource, names), at_once=at_once)
    created = [one for stage in planned for one in stage]
    assert len(created) == len(CHILDREN)
    assert all(one in created for one in CHILDREN)
