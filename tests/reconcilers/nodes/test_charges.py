"""Charges against nodes: which count, for whom, and how long."""

import datetime
import itertools

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.verdict import Attempt, Cause, Confidence
from dlctl.informers.handlers import Change
from dlctl.metrics import Metrics
from dlctl.reconcilers.nodes.charge_ledger import MAX_DELETED_OF_NAMESPACE, ChargeLedger
from dlctl.reconcilers.nodes.charges import CHARGED_CAUSES, NodeCharges
from tests.builders import NOW
from tests.reconcilers.nodes.charged_jobs import DAY_S, avoided, ended, job, ledger_of
from tests.support.cost_growth import cost_growth
from tests.support.timing import ManualClock


def of_node(ledger: ChargeLedger, name: str, namespace: str = "") -> NodeCharges | None:
    return next((one for one in ledger.all(namespace) if one.node == name), None)


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("nested", [True, False])
def test_only_faults_of_nodes_are_charged(cause: Cause, nested: bool) -> None:
    ledger = ledger_of(job("1", ended(cause=cause), nested=nested))
    assert (of_node(ledger, "node-a") is not None) == (cause in CHARGED_CAUSES)


@pytest.mark.parametrize("cause", list(Cause))
def test_planned_ends_are_not_charged(cause: Cause) -> None:
    attempt = ended(cause=cause)
    assert attempt.verdict is not None
    planned = attrs.evolve(attempt, verdict=attrs.evolve(attempt.verdict, is_planned=True))
    assert of_node(ledger_of(job("1", planned)), "node-a") is None


def test_node_is_avoided_from_its_second_job_on() -> None:
    one, other = job("1", ended(), ended()), job("2", ended())
    assert avoided(ledger_of(one)) == []
    assert avoided(ledger_of(one, other)) == ["node-a"]


def test_charge_expires() -> None:
    ledger = ledger_of(job("1", ended(ago_s=10)), job("2", ended()))
    clock = ledger.clock
    assert isinstance(clock, ManualClock)
    clock.seconds = NOW.timestamp() + DAY_S - 11
    assert avoided(ledger) == ["node-a"]
    clock.seconds = NOW.timestamp() + DAY_S - 9
    assert avoided(ledger) == []
    assert of_node(ledger, "node-a") is not None
    clock.seconds = NOW.timestamp() + DAY_S
    assert of_node(ledger, "node-a") is None


def test_charge_of_an_attempt_without_an_end_has_the_time_of_its_verdict() -> None:
    edited = [attrs.evolve(ended(ago_s=ago_s), end_time=None) for ago_s in (0, 2 * DAY_S)]
    assert avoided(ledger_of(*(job(str(n), edited[0]) for n in range(2)))) == ["node-a"]
    assert of_node(ledger_of(job("1", edited[1])), "node-a") is None


def test_charge_from_the_far_future_does_not_count() -> None:
    assert of_node(ledger_of(job("1", ended(ago_s=-2 * DAY_S))), "node-a") is None


def test_charge_proved_by_a_log_counts_in_its_namespace_only() -> None:
    low = [job(uid, ended(confidence=Confidence.MEDIUM)) for uid in ("1", "2")]
    ledger = ledger_of(*low)
    assert avoided(ledger) == []
    own = of_node(ledger, "node-a", "ml")
    assert own is not None
    assert own.is_avoided
    assert of_node(ledger, "node-a", "other") is None


def test_charges_proved_by_logs_cost_no_time_in_other_namespaces() -> None:
    ledgers = {size: ledger_with_noise(size) for size in (500, 2000)}
    # What was found for one namespace is kept for a second.
    namespaces = map(str, itertools.count())

    def look(size: int) -> None:
        for namespace in itertools.islice(namespaces, 20):
            assert ledgers[size].all(namespace) == []

    assert cost_growth(look, small=500) < 2


def ledger_with_noise(job_count: int) -> ChargeLedger:
    noise = [ended(f"node-{n}", confidence=Confidence.MEDIUM) for n in range(4)]
    return ledger_of(*(job(str(number), *noise, namespace="noisy") for number in range(job_count)))


def test_charges_of_a_deleted_job_stay() -> None:
    gone = job("1", ended())
    ledger = ledger_of(gone, job("2", ended()))
    ledger.handle(Change(gone, None))
    assert avoided(ledger) == ["node-a"]


def test_job_of_the_same_name_charges_for_itself() -> None:
    first, second = job("1", ended()), job("2", ended())
    ledger = ledger_of(first)
    ledger.handle(Change(first, renamed(second, first)))
    assert avoided(ledger) == ["node-a"]


def renamed(job_: JobObject, as_: JobObject) -> JobObject:
    metadata = msgspec.structs.replace(job_.metadata, name=as_.metadata.name)
    return msgspec.structs.replace(job_, metadata=metadata)


def test_deleted_jobs_of_one_namespace_do_not_push_out_those_of_another() -> None:
    ledger = ledger_of(job("1", ended(), namespace="a"))
    ledger.handle(Change(job("1", ended(), namespace="a"), None))
    for number in range(2 * MAX_DELETED_OF_NAMESPACE):
        noise = job(f"noise-{number}", ended(f"node-{number}"), namespace="b")
        ledger.handle(Change(None, noise))
        ledger.handle(Change(noise, None))
    assert of_node(ledger, "node-a") is not None
    assert len(list(ledger.all())) == MAX_DELETED_OF_NAMESPACE + 1


def test_new_charges_are_counted_once_and_old_ones_not_at_all() -> None:
    ledger = ChargeLedger(DAY_S, ManualClock(NOW.timestamp()), Metrics())
    ledger.handle(Change(None, job("old", ended()), initial=True))
    ledger.handle(Change(None, job("before it reports", ended())))
    ledger.start_reporting()
    before, after = job("1"), job("1", ended(cause=Cause.HARDWARE))
    ledger.handle(Change(None, before))
    ledger.handle(Change(before, after))
    ledger.handle(Change(after, job("1", ended(cause=Cause.HARDWARE))))
    value = ledger.metrics.registry.get_sample_value
    assert value("dlctl_node_charges_total", {"cause": "Hardware"}) == 1
    assert value("dlctl_node_charges_total", {"cause": "Node"}) is None


def test_nothing_is_kept_of_charges_that_are_gone() -> None:
    charged = job("1", ended(), ended("node-b", confidence=Confidence.MEDIUM))
    ledger = ledger_of(charged)
    ledger.handle(Change(charged, job("1")))
    assert not ledger._by_scope


def test_status_with_the_same_charges_notifies_of_no_node() -> None:
    ledger, notified = ledger_of(job("1", ended())), list[str]()
    ledger.on_change.append(notified.append)
    planned = attrs.evolve(ended("node-b"), verdict=None)
    ledger.handle(Change(job("1", ended()), job("1", ended(), planned)))
    assert notified == []
    ledger.handle(Change(job("1", ended(), planned), job("1", ended(), ended("node-b"))))
    assert sorted(notified) == ["node-a", "node-b"]


@pytest.mark.parametrize("status", ['"x"', "[]", '{"attempts": 3}', '{"dlctl": {"attempts": {}}}'])
def test_malformed_status_charges_nothing(status: str) -> None:
    stored = msgspec.structs.replace(job("1"), status=msgspec.Raw(status.encode()))
    assert ledger_of(stored).all() == []


ATTEMPTS = st.lists(
    st.builds(
        ended,
        st.sampled_from(["node-a", "node-b", "node-c", ""]),
        st.sampled_from(list(Cause)),
        st.sampled_from(list(Confidence)),
        ago_s=st.integers(0, int(2 * DAY_S)),
    ),
    max_size=5,
)
STATES = st.lists(st.tuples(st.sampled_from("123"), ATTEMPTS), max_size=12)


@given(STATES)
def test_a_new_leader_finds_what_the_last_one_knew(states: list[tuple[str, list[Attempt]]]) -> None:
    current: dict[str, JobObject] = {}
    followed = ledger_of()
    for uid, attempts in states:
        new = job(uid, *attempts)
        followed.handle(Change(current.get(uid), new))
        current[uid] = new
    fresh = ledger_of(*current.values())
    found = {one.node: one.jobs for one in followed.all("ml")}
    assert found == {one.node: one.jobs for one in fresh.all("ml")}
    assert avoided(followed) == avoided(fresh)


@given(ATTEMPTS)
def test_avoided_node_is_charged_by_two_jobs_for_certain_and_not_long_ago(
    attempts: list[Attempt],
) -> None:
    ledger = ledger_of(*(job(str(n), one) for n, one in enumerate(attempts)))
    certain: dict[str, int] = {}
    for one in attempts:
        verdict = one.verdict
        assert verdict is not None
        is_recent = NOW - verdict.time < datetime.timedelta(seconds=DAY_S)
        is_certain = verdict.confidence is Confidence.HIGH and verdict.cause in CHARGED_CAUSES
        if verdict.node and is_recent and is_certain:
            certain[verdict.node] = certain.get(verdict.node, 0) + 1
    assert set(avoided(ledger)) == {node for node, count in certain.items() if count >= 2}


def test_the_most_charged_node_comes_first() -> None:
    jobs = [job("1", ended("old", ago_s=9)), job("2", ended("old", ago_s=8))]
    jobs += [job(str(n), ended("bad", ago_s=60)) for n in range(3, 6)]
    jobs += [job(str(n), ended("new")) for n in range(6, 8)]
    assert avoided(ledger_of(*jobs)) == ["bad", "new", "old"]


def test_name_that_no_node_can_have_is_not_charged() -> None:
    node = "n" * 254
    assert avoided(ledger_of(job("1", ended(node)), job("2", ended(node)))) == []
