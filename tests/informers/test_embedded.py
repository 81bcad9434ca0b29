"""An informer against the embedded server: whatever fails, the store ends up correct."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator

import attrs
import pytest

from dlctl.api.meta import CONFIG_MAPS, Object, ObjectKey
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.server import ApiServer, serve
from tests.informers.watching import CountedBackoff, until
from tests.support.throttling import too_many_requests
from tests.support.timing import ManualClock

SELECTOR = "app=x"


@attrs.define
class InformerHarness:
    """A server, a client that writes, and an informer that watches some of the objects."""

    server: ApiServer
    client: Client
    informer: Informer[Object]
    view: dict[ObjectKey, Object]
    started: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def run(self) -> None:
        await self.started.wait()
        await self.informer.run()

    async def write(self, name: str, text: str, **labels: str) -> str:
        """Create or change an object and return its version."""
        meta = {"name": name, "labels": labels or {"app": "x"}}
        body = {"metadata": meta, "data": {"text": text}}
        try:
            obj = await self.client.create(CONFIG_MAPS, "default", body)
        except AlreadyExistsError:
            obj = await self.client.patch(CONFIG_MAPS, ObjectKey("default", name), body)
        return obj.metadata.resource_version

    async def delete(self, name: str) -> None:
        await self.client.delete(CONFIG_MAPS, ObjectKey("default", name))

    async def truth(self) -> dict[ObjectKey, Object]:
        page = await self.client.list(CONFIG_MAPS, Object, label_selector=SELECTOR)
        return {obj.key: obj for obj in page.items}

    async def settled(self) -> None:
        """Wait until the informer has caught up, and compare its store with the server."""
        self.started.set()
        version = int(await self.write("last", random.randbytes(8).hex()))
        await until(lambda: int(self.informer.store.resource_version or 0) >= version)
        truth = await self.truth()
        assert {obj.key: obj for obj in self.informer.store} == truth
        assert self.view == truth


@pytest.fixture
async def harness() -> AsyncIterator[InformerHarness]:
    view: dict[ObjectKey, Object] = {}

    def see(change: Change[Object]) -> None:
        if change.new:
            view[change.key] = change.new
        else:
            view.pop(change.key, None)

    async with (
        serve(tls=False, window=20) as server,
        Client(server.config()) as client,
        Client(server.config(), user_agent="watcher") as watcher,
    ):
        informer = Informer(
            watcher,
            CONFIG_MAPS,
            Object,
            label_selector=SELECTOR,
            clock=ManualClock(),
            backoff=CountedBackoff(ManualClock()),
        )
        informer.add_handler(see)
        async with asyncio.TaskGroup() as group:
            lab = InformerHarness(server, client, informer, view)
            running = group.create_task(lab.run())
            yield lab
            running.cancel()


async def test_initial_objects_are_streamed(harness: InformerHarness) -> None:
    await harness.write("a", "1")
    await harness.settled()
    asked = Counter(
        {a.verb: n for a, n in harness.server.audit.items() if a.user_agent == "watcher"}
    )
    assert asked == {"watch": 1}


async def test_objects_are_in_the_store_while_the_selector_matches(
    harness: InformerHarness,
) -> None:
    await harness.write("a", "1")
    await harness.settled()
    await harness.write("a", "2", app="y")
    await harness.write("b", "1", app="y")
    await harness.settled()
    assert harness.informer.store.get(ObjectKey("default", "a")) is None


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(verb="watch", cut_after=1), id="cut"),
        pytest.param(Fault(verb="watch", reset="before"), id="reset"),
        pytest.param(Fault(verb="watch", status=status.expired("old")), id="expired"),
        pytest.param(
            Fault(verb="watch", status=status.expired("old"), in_stream=True), id="expired later"
        ),
        pytest.param(Fault(verb="watch", status=too_many_requests("later", 1)), id="throttled"),
        pytest.param(Fault(verb="watch", status=status.internal_error("broken")), id="broken"),
        pytest.param(
            Fault(verb="watch", status=status.too_large_version(9999, 1)), id="from the future"
        ),
    ],
)
async def test_faults_lose_no_change(harness: InformerHarness, fault: Fault) -> None:
    faults = harness.server.faults
    for each in (fault, Fault(verb="watch", cut_after=5), attrs.evolve(fault, times=2)):
        faults.add(each)
    await harness.write("a", "1")
    await harness.write("b", "1")
    await harness.settled()
    await harness.delete("a")
    for text in "123456":
        await harness.write("c", text)
    await harness.settled()
    await until(lambda: faults.matched == 4)


@pytest.mark.parametrize("seed", range(5))
async def test_store_matches_the_server_after_any_writes_and_faults(
    harness: InformerHarness, seed: int
) -> None:
    dice = random.Random(seed)
    harness.started.set()
    for _ in range(40):
        if dice.random() < 0.2:
            faults = [
                Fault(verb="watch", cut_after=dice.randrange(3)),
                Fault(verb="watch", status=status.expired("old"), in_stream=True),
                Fault(verb="list", status=status.internal_error("broken")),
                Fault(verb="watch", reset="before"),
            ]
            harness.server.faults.add(dice.choice(faults))
        name = f"o{dice.randrange(6)}"
        if dice.random() < 0.3:
            await harness.delete(name)
        else:
            await harness.write(name, str(dice.random()), app=dice.choice("xxy"))
    harness.server.faults.clear()
    await harness.settled()
