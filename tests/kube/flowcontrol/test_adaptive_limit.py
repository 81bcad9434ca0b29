"""The number of concurrent writes: grows with good responses, falls with congestion."""

from hypothesis import given
from hypothesis import strategies as st

from dlctl.kube.flowcontrol.adaptive_limit import MAX, MIN, AdaptiveLimit

RESPONSES = st.lists(
    st.tuples(st.floats(0, 30), st.sampled_from(["ok", "not full", "429"])), max_size=300
)


def served(limit: AdaptiveLimit, latencies_s: list[float], start: float = 0.0) -> AdaptiveLimit:
    """Let one response follow the other, each of a full client."""
    now = start
    for latency_s in latencies_s:
        now += latency_s
        limit.observe_response(now - latency_s, now, is_full=True)
    return limit


def test_limit_grows_by_one_with_each_round_of_fast_responses() -> None:
    limit = AdaptiveLimit()
    before = limit.count
    served(limit, [0.01] * (before + 1))
    assert limit.count == before + 1


def test_fast_responses_of_a_client_that_is_not_full_prove_nothing() -> None:
    limit = AdaptiveLimit()
    before = limit.count
    for n in range(1000):
        limit.observe_response(n, n + 0.01, is_full=False)
    assert limit.count == before


def test_limit_stays_where_responses_take_longer() -> None:
    limit = AdaptiveLimit()
    before = limit.count
    assert served(limit, [0.3] * 1000).count == before


def test_limit_returns_to_its_start_where_responses_take_longer() -> None:
    """More requests in flight would only make those of other jobs wait."""
    limit = AdaptiveLimit()
    before = limit.count
    assert served(limit, [0.01] * 2000).count > before + 8
    for n in range(5000):
        limit.observe_response(30 + 0.005 * n, 30.5 + 0.005 * n, is_full=True)
    assert limit.count == before


def test_limit_recovers_although_pods_take_longer_than_events() -> None:
    limit = served(AdaptiveLimit(), [0.005] * 10)
    before = limit.count
    for n in range(10):
        limit.observe_congestion(float(n), n + 0.5)
    served(limit, [0.2] * (before * before), start=12)
    assert limit.count >= before


def test_slow_but_steady_server_gets_more() -> None:
    limit = AdaptiveLimit()
    before = limit.count
    assert served(limit, [0.12] * 1000).count > before


def test_one_round_of_rejections_counts_once() -> None:
    limit = AdaptiveLimit()
    before = limit.count
    for _ in range(before):
        limit.observe_congestion(10.0, 10.5)
    assert limit.count == int(before * 0.7)
    limit.observe_congestion(10.6, 11.0)
    assert limit.count == int(before * 0.7 * 0.7)


def test_response_over_a_second_is_congestion() -> None:
    limit = served(AdaptiveLimit(), [0.05] * 10)
    before = limit.count
    assert served(limit, [1.5], start=10).count < before


def test_server_that_is_always_slow_is_not_congested() -> None:
    """Webhooks may take seconds for each write: sending fewer changes nothing."""
    limit = AdaptiveLimit()
    before = limit.count
    assert served(limit, [2.0] * 100).count == before


def test_server_that_has_become_slow_is_the_new_normal_after_two_minutes() -> None:
    limit = served(AdaptiveLimit(), [0.05] * 10)
    served(limit, [2.0] * 100, start=10)
    low = limit.count
    served(limit, [0.1] * 2000, start=300)
    assert low < limit.count


@given(RESPONSES)
def test_limit_stays_within_its_bounds(responses: list[tuple[float, str]]) -> None:
    limit, now = AdaptiveLimit(), 0.0
    for latency_s, outcome in responses:
        now += latency_s
        if outcome == "429":
            limit.observe_congestion(now - latency_s, now)
        else:
            limit.observe_response(now - latency_s, now, is_full=outcome == "ok")
        assert MIN <= limit.count <= MAX
