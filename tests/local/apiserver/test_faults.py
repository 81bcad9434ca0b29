import asyncio

import aiohttp
import pytest

from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.local.apiserver.raw_client import CONFIG_MAPS, PODS, RawClient, config_map, pod
from tests.support.throttling import too_many_requests


async def test_fault_occurs_as_often_as_configured(api: RawClient) -> None:
    api.server.faults.add(Fault(verb="get", times=2, status=status.internal_error("broken")))
    codes = [(await api.get(f"{PODS}/a")).code for _ in range(3)]
    assert codes == [500, 500, 404]
    assert api.server.faults.matched == 2


async def test_fault_affects_only_matching_requests(api: RawClient) -> None:
    error = status.internal_error("broken")
    api.server.faults.add(Fault(verb="write", resource="configmaps", name="a", status=error))
    assert (await api.get(CONFIG_MAPS)).code == 200
    assert (await api.post(PODS, pod("a"))).code == 201
    assert (await api.post(CONFIG_MAPS, config_map("a"))).code == 201
    assert (await api.patch(f"{CONFIG_MAPS}/a", {})).code == 500


async def test_throttling_has_retry_after(api: RawClient) -> None:
    api.server.faults.add(Fault(status=too_many_requests("later", 3)))
    answer = await api.get(PODS)
    assert (answer.code, answer.body["reason"]) == (429, "TooManyRequests")
    assert answer.headers["Retry-After"] == "3"


@pytest.mark.parametrize(
    ("when", "done"), [pytest.param("before", False), pytest.param("after", True)]
)
async def test_reset_comes_before_or_after_the_write(api: RawClient, when: str, done: bool) -> None:
    fault = Fault(verb="create", reset="after" if when == "after" else "before")
    api.server.faults.add(fault)
    with pytest.raises(aiohttp.ClientConnectionError):
        await api.post(CONFIG_MAPS, config_map("a"))
    assert ((await api.get(f"{CONFIG_MAPS}/a")).code == 200) is done


async def test_answer_replaces_the_response_to_a_write_that_is_done(api: RawClient) -> None:
    api.server.faults.add(Fault(verb="create", answer=(504, b'"late"')))
    late = await api.post(CONFIG_MAPS, config_map("a"))
    assert (late.code, late.body) == (504, "late")
    assert (await api.get(f"{CONFIG_MAPS}/a")).code == 200


async def test_unanswered_write_is_done(api: RawClient) -> None:
    created = asyncio.Event()
    api.server.storage.observers.append(lambda change: created.set())
    api.server.faults.add(Fault(verb="create", unanswered=True))
    writing = asyncio.create_task(api.post(CONFIG_MAPS, config_map("a")))
    async with asyncio.timeout(5):
        await created.wait()
    assert (await api.get(f"{CONFIG_MAPS}/a")).code == 200
    assert not writing.done()
    writing.cancel()


async def test_late_request_is_done_after_its_client_has_given_up(api: RawClient) -> None:
    created = asyncio.Event()
    api.server.storage.observers.append(lambda change: created.set())
    api.server.faults.add(Fault(verb="create", late_s=0.05))
    with pytest.raises(aiohttp.ClientConnectionError):
        await api.post(CONFIG_MAPS, config_map("a"))
    assert (await api.get(f"{CONFIG_MAPS}/a")).code == 404
    async with asyncio.timeout(5):
        await created.wait()
    assert (await api.get(f"{CONFIG_MAPS}/a")).code == 200


async def test_client_that_has_left_is_no_error(
    api: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    api.server.faults.add(Fault(reset="after"))
    with pytest.raises(aiohttp.ClientConnectionError):
        await api.post(CONFIG_MAPS, config_map("a"))
    await api.get(PODS)
    assert not caplog.records


async def test_delay_is_before_the_response(api: RawClient) -> None:
    api.server.faults.add(Fault(delay_s=0.05))
    loop = asyncio.get_running_loop()
    start = loop.time()
    await api.get(PODS)
    assert loop.time() - start >= 0.05


async def test_watch_is_cut_after_some_events(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    await api.create(PODS, pod("b"))
    api.server.faults.add(Fault(verb="watch", cut_after=1))
    async with api.watch(PODS) as events:
        assert await events.next_named(1) == [("ADDED", "a")]
        assert await events.expect_end()


async def test_silent_watch_sends_nothing_more(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    api.server.faults.add(Fault(verb="watch", silent=True))
    async with api.watch(PODS, allowWatchBookmarks="true") as events:
        assert await events.next_named(1) == [("ADDED", "a")]
        await api.create(PODS, pod("b"))
        # Longer than the interval of bookmarks.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.15):
                await events.next()


async def test_error_can_occur_within_a_watch(api: RawClient) -> None:
    error = status.expired("too old resource version: 1 (2)")
    api.server.faults.add(Fault(verb="watch", status=error, in_stream=True))
    async with api.watch(PODS) as events:
        type_, body = await events.next()
        assert (type_, body["code"]) == ("ERROR", 410)
        assert await events.expect_end()


async def test_stale_list_is_sent_to_requests_for_any_version(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    await api.create(CONFIG_MAPS, config_map("b"))
    api.server.faults.add(Fault(verb="list", stale_by=1, times=None))
    stale = await api.get(CONFIG_MAPS, resourceVersion=0)
    assert stale.names == ["a"]
    assert int(stale.version) == api.server.storage.revision - 1
    assert (await api.get(CONFIG_MAPS)).names == ["a", "b"]
    fresh = await api.get(CONFIG_MAPS, resourceVersion=api.server.storage.revision)
    assert fresh.names == ["a", "b"]


async def test_probable_faults_repeat_with_their_seed(api: RawClient) -> None:
    api.server.faults.add(
        Fault(probability=0.5, times=None, status=status.internal_error("broken"))
    )
    codes = [(await api.get(PODS)).code for _ in range(40)]
    assert 5 < codes.count(500) < 35
    api.server.faults.clear()
    assert (await api.get(PODS)).code == 200
