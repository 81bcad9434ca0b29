"""What a failure policy says about a failure: the first rule that matches decides."""

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.objects.pods import Pod
from dlctl.api.policies.failure_policy import ExitCodes, FailureAction, FailurePolicy, FailureRule
from dlctl.api.status.verdict import Cause, Confidence, Verdict
from dlctl.reconcilers.failures.policy_rules import Decision, decide
from tests.builders import NOW, exited, make_job, make_pod, training_job

JOB = make_job(training_job("PyTorchJob", Master=1, Worker=2))
WORKER = next(replica for replica in JOB.replicas if replica.type == "worker")
FAIL, JOB_, REPLICA = (
    FailureAction.FAIL_JOB,
    FailureAction.RESTART_JOB,
    FailureAction.RESTART_REPLICA,
)
FREE_JOB = FailureAction.RESTART_JOB_AND_IGNORE_MAX_RESTARTS
FREE_REPLICA = FailureAction.RESTART_REPLICA_AND_IGNORE_MAX_RESTARTS


def verdict(cause: Cause = Cause.USER_CODE, **fields: Any) -> Verdict:
    given: dict[str, Any] = {
        "replica": "worker-0",
        "pod": "linear-worker-0",
        "exit_code": 1,
    } | fields
    return Verdict(cause, Confidence.LOW, "exit code 1", NOW, **given)


def blamed_pod(**status: Any) -> Pod:
    return make_pod(JOB, WORKER, phase="Failed", state=exited(1), **status)


def decision(
    rules: Sequence[FailureRule] = (),
    found: Verdict | None = None,
    *,
    pod: Pod | None = None,
    maximum: int = 3,
    counted: int = 0,
) -> Decision:
    policy = FailurePolicy(maximum, rules=rules)
    return decide(policy, found or verdict(), pod, "pytorch", counted)


@pytest.mark.parametrize(
    ("cause", "counts"),
    [(cause, not cause.is_infrastructure) for cause in Cause],
)
def test_job_restarts_where_no_rule_matches(cause: Cause, counts: bool) -> None:
    assert decision(found=verdict(cause)) == Decision(JOB_, counts)


@pytest.mark.parametrize(
    ("cause", "maximum", "counted", "fails"),
    [
        pytest.param(Cause.USER_CODE, 0, 0, True, id="none allowed"),
        pytest.param(Cause.USER_CODE, 2, 1, False, id="one left"),
        pytest.param(Cause.USER_CODE, 2, 2, True, id="used up"),
        pytest.param(Cause.NODE, 0, 0, False, id="not the user's"),
        pytest.param(Cause.UNKNOWN, 0, 0, True, id="unknown"),
    ],
)
def test_job_fails_when_its_restarts_are_used_up(
    cause: Cause, maximum: int, counted: int, fails: bool
) -> None:
    found = decision(found=verdict(cause), maximum=maximum, counted=counted)
    assert (found == Decision(FAIL, reason="ReachedMaxRestarts")) is fails


@pytest.mark.parametrize(
    ("action", "cause", "wanted"),
    [
        (FAIL, Cause.NODE, Decision(FAIL, reason="FailJobAction")),
        (JOB_, Cause.USER_CODE, Decision(FAIL, reason="ReachedMaxRestarts")),
        (REPLICA, Cause.USER_CODE, Decision(FAIL, reason="ReachedMaxRestarts")),
        (FREE_JOB, Cause.USER_CODE, Decision(FREE_JOB)),
        (FREE_REPLICA, Cause.USER_CODE, Decision(FREE_REPLICA)),
        (REPLICA, Cause.PREEMPTION, Decision(REPLICA)),
    ],
)
def test_rule_without_conditions_matches_every_failure(
    action: FailureAction, cause: Cause, wanted: Decision
) -> None:
    assert decision([FailureRule(action)], verdict(cause), maximum=0) == wanted


def test_cause_that_is_not_the_users_counts_by_a_rule_that_names_it() -> None:
    rules = [FailureRule(JOB_, causes=frozenset({Cause.NODE}))]
    assert decision(rules, verdict(Cause.NODE)) == Decision(JOB_, counts=True)
    assert decision(rules, verdict(Cause.NODE), maximum=0).action is FAIL


def test_first_matching_rule_decides() -> None:
    rules = [
        FailureRule(FAIL, exit_codes=ExitCodes(frozenset({42}))),
        FailureRule(FREE_REPLICA, target_replicas=frozenset({"worker"})),
        FailureRule(FAIL),
    ]
    assert decision(rules).action is FREE_REPLICA
    assert decision(rules, verdict(exit_code=42)).action is FAIL
    assert decision(rules, verdict(replica="master-0")).action is FAIL


TERMINATED_SIDECAR = {
    "containerStatuses": [
        {"name": "pytorch", "state": exited(1)},
        {"name": "sidecar", "state": exited(7)},
    ]
}


@pytest.mark.parametrize(
    ("codes", "found", "matches"),
    [
        pytest.param(ExitCodes(frozenset({1, 3})), 3, True, id="in"),
        pytest.param(ExitCodes(frozenset({1, 3})), 2, False, id="not in"),
        pytest.param(ExitCodes(frozenset({3}), is_negated=True), 2, True, id="negated"),
        pytest.param(ExitCodes(frozenset({3}), is_negated=True), 3, False, id="negated, listed"),
        pytest.param(ExitCodes(frozenset({3}), is_negated=True), None, False, id="unknown code"),
        pytest.param(ExitCodes(frozenset({3}), is_negated=True), 0, False, id="success"),
        pytest.param(ExitCodes(frozenset({3}), container="pytorch"), 3, True, id="by its name"),
        pytest.param(ExitCodes(frozenset({7}), container="sidecar"), 3, True, id="another one"),
        pytest.param(ExitCodes(frozenset({3}), container="sidecar"), 3, False, id="another's code"),
        pytest.param(ExitCodes(frozenset({3}), container="other"), 3, False, id="none such"),
    ],
)
def test_rule_matches_the_exit_code_of_the_verdict(
    codes: ExitCodes, found: int | None, matches: bool
) -> None:
    rules = [FailureRule(FREE_REPLICA, exit_codes=codes)]
    pod = blamed_pod(**TERMINATED_SIDECAR)
    chosen = decision(rules, verdict(exit_code=found), pod=pod).action
    assert (chosen is FREE_REPLICA) is matches


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        pytest.param([("DisruptionTarget", "True")], True, id="met"),
        pytest.param([("DisruptionTarget", "False")], False, id="another status"),
        pytest.param([("Absent", "True")], False, id="absent"),
        pytest.param([("Absent", "True"), ("DisruptionTarget", "True")], True, id="one of two"),
    ],
)
def test_rule_matches_conditions_of_the_pod(wanted: list[tuple[str, str]], matches: bool) -> None:
    rules = [FailureRule(FREE_REPLICA, pod_conditions=wanted)]
    pod = blamed_pod(conditions=[{"type": "DisruptionTarget", "status": "True"}])
    assert (decision(rules, pod=pod).action is FREE_REPLICA) is matches
    assert decision(rules, pod=None).action is JOB_


def test_all_conditions_of_a_rule_must_match() -> None:
    rule = FailureRule(
        FAIL,
        exit_codes=ExitCodes(frozenset({1})),
        causes=frozenset({Cause.USER_CODE}),
        target_replicas=frozenset({"worker"}),
    )
    assert decision([rule]).action is FAIL
    for other in (
        verdict(exit_code=2),
        verdict(Cause.OUT_OF_MEMORY),
        verdict(replica="master-0"),
        verdict(replica=""),
    ):
        assert decision([rule], other).action is JOB_


RULES = st.lists(
    st.builds(
        FailureRule,
        st.sampled_from(FailureAction),
        exit_codes=st.none()
        | st.builds(ExitCodes, st.frozensets(st.integers(1, 5)), st.booleans()),
        causes=st.frozensets(st.sampled_from(Cause), max_size=3),
        target_replicas=st.frozensets(st.sampled_from(["master", "worker"])),
    ),
    max_size=5,
)
VERDICTS = st.builds(
    verdict,
    st.sampled_from(Cause),
    exit_code=st.none() | st.integers(1, 5),
    replica=st.sampled_from(["worker-0", "master-0", ""]),
)


@given(rules=RULES, found=VERDICTS, maximum=st.integers(0, 3), counted=st.integers(0, 4))
def test_decision_keeps_the_maximum_and_depends_on_matching_rules_alone(
    rules: list[FailureRule], found: Verdict, maximum: int, counted: int
) -> None:
    chosen = decision(rules, found, maximum=maximum, counted=counted)
    # What counts never exceeds the maximum, and what fails the job has a reason.
    assert not chosen.counts or counted < maximum
    assert bool(chosen.reason) is (chosen.action is FAIL)
    assert not chosen.counts or chosen.action.counts
    # Rules behind one that matches everything have no effect.
    last = FailureRule(FREE_JOB)
    with_last = decision([*rules, last], found, maximum=maximum, counted=counted)
    with_more = decision([*rules, last, FailureRule(FAIL)], found, maximum=maximum, counted=counted)
    assert with_last == with_more
    # A rule for a type that is not to blame changes nothing.
    if found.replica == "worker-0":
        other = attrs.evolve(last, target_replicas=frozenset({"master"}))
        assert decision([other, *rules], found, maximum=maximum, counted=counted) == chosen
