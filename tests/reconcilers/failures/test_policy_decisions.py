"""When a failure policy decides: once for each end of an attempt, and not on the first symptom."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.failure_policy import FailureAction
from dlctl.api.status.job_status import JobStatus
from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict
from dlctl.reconcilers.failures.policy_decisions import (
    EVIDENCE_WAIT_S,
    LOST_PEER_EVIDENCE_WAIT_S,
    evidence_wait_left_s,
    new_decision,
    policy_failure,
    restart_text,
)
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits
from dlctl.reconcilers.lifecycle.replica_restarts import RESTART_BACKOFF
from dlctl.reconcilers.observe import Children, Observed, observe
from dlctl.reconcilers.termination import PHASE_WAIT_S
from tests.builders import NOW, exited, make_job, make_pod, training_job

WORKER = Replica("worker", 0)
RUNNING = Attempt(0, NOW)


def after(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def ended(number: int = 0, confidence: Confidence = Confidence.LOW, **verdict: Any) -> Attempt:
    blamed: dict[str, Any] = {"replica": "worker-0", "pod": "linear-worker-0", "exit_code": 1}
    cause = verdict.pop("cause", Cause.USER_CODE)
    found = Verdict(cause, confidence, "exit code 1", NOW, **(blamed | verdict))
    return Attempt(number, NOW, NOW, found)


def job(*attempts: Attempt, **policy: Any) -> Job:
    wire = training_job("PyTorchJob", Master=1, Worker=1)
    wire["spec"]["runPolicy"] = {"failurePolicy": policy}
    return attrs.evolve(make_job(wire), status=JobStatus(attempts=attempts))


def failed_pod(of: Job, **fields: Any) -> Pod:
    return make_pod(of, WORKER, phase="Failed", state=exited(1), restart_policy="Never", **fields)


def seen(of: Job, *pods: Pod) -> Observed:
    return observe(of, Children(pods), NOW)


@pytest.mark.parametrize(
    ("before", "now", "is_new"),
    [
        pytest.param([], [ended()], True, id="first attempt"),
        pytest.param([RUNNING], [ended()], True, id="present attempt"),
        pytest.param([ended()], [ended()], False, id="recorded before"),
        pytest.param([ended()], [ended(confidence=Confidence.HIGH)], False, id="better proof"),
        pytest.param([ended()], [ended(), ended(1)], True, id="another one at once"),
        pytest.param([RUNNING], [RUNNING], False, id="running"),
        pytest.param([], [], False, id="none"),
    ],
)
def test_each_end_is_decided_once(before: list[Attempt], now: list[Attempt], is_new: bool) -> None:
    of = job(*before, maxRestarts=1)
    status = attrs.evolve(of.status, attempts=tuple(now))
    decision = new_decision(of, status, seen(of, failed_pod(of)))
    assert (decision is not None) is is_new
    if decision is not None:
        assert decision.action is FailureAction.RESTART_JOB


def test_restarts_counted_before_decide() -> None:
    of = job(RUNNING, maxRestarts=1)
    status = attrs.evolve(of.status, attempts=(ended(),), counted_restarts=1)
    decision = new_decision(of, status, seen(of))
    assert decision is not None
    failure = policy_failure(of, decision, status)
    assert failure.reason == "ReachedMaxRestarts"
    assert failure.message == "Job linear has failed because it has reached maxRestarts, 1"


@pytest.mark.parametrize(
    ("action", "ends_with"),
    [
        pytest.param("FailJob", "exit code 1 (rule full-queue)", id="fails"),
        pytest.param("RestartJob", "has reached maxRestarts, 0 (rule full-queue)", id="no restart"),
    ],
)
def test_failure_names_the_rule_that_decided(action: str, ends_with: str) -> None:
    of = job(RUNNING, rules=[{"name": "full-queue", "action": action}])
    status = attrs.evolve(of.status, attempts=(ended(),))
    decision = new_decision(of, status, seen(of))
    assert decision is not None
    assert policy_failure(of, decision, status).message.endswith(ends_with)


def test_restart_names_the_rule_that_decided() -> None:
    of = job(RUNNING, maxRestarts=1, rules=[{"name": "full-queue", "action": "RestartJob"}])
    status = attrs.evolve(of.status, attempts=(ended(),))
    decision = new_decision(of, status, seen(of))
    assert decision is not None
    limits = RestartLimits(RESTART_BACKOFF)
    text = restart_text(decision, status, limits, after(60))
    assert text.startswith("UserCode, worker-0")
    assert text.endswith(" (rule full-queue)")


@pytest.mark.parametrize(
    ("attempt", "age_s", "left_s"),
    [
        pytest.param(ended(), 0, EVIDENCE_WAIT_S, id="weak proof"),
        pytest.param(ended(), 1, EVIDENCE_WAIT_S - 1, id="a second later"),
        pytest.param(ended(), EVIDENCE_WAIT_S, 0, id="over"),
        pytest.param(ended(), -60, 0, id="clock far ahead"),
        pytest.param(ended(confidence=Confidence.HIGH), 0, 0, id="strong proof"),
        pytest.param(ended(pod="other"), 0, 0, id="pod is gone"),
        pytest.param(RUNNING, 0, 0, id="running"),
    ],
)
def test_weak_proof_waits_for_late_ends(attempt: Attempt, age_s: float, left_s: float) -> None:
    of = job(RUNNING)
    observed = seen(of, failed_pod(of))
    assert evidence_wait_left_s(of, (attempt,), observed, after(age_s)) == left_s


@pytest.mark.parametrize(
    ("phase", "age_s", "left_s"),
    [
        pytest.param(
            "Running",
            EVIDENCE_WAIT_S,
            LOST_PEER_EVIDENCE_WAIT_S - EVIDENCE_WAIT_S,
            id="its peer may be lost",
        ),
        pytest.param("Running", LOST_PEER_EVIDENCE_WAIT_S, 0, id="its peer runs on"),
        pytest.param("Pending", EVIDENCE_WAIT_S, 0, id="its peer has not run"),
    ],
)
def test_replica_that_lost_a_peer_waits_for_news_of_the_peers_node(
    phase: str, age_s: float, left_s: float
) -> None:
    of = job(RUNNING)
    state: Any = {"running": {}} if phase == "Running" else None
    peer = make_pod(of, Replica("master", 0), phase=phase, state=state)
    observed = seen(of, failed_pod(of), peer)
    attempt = ended(cause=Cause.UNKNOWN, is_consequence=True)
    assert evidence_wait_left_s(of, (attempt,), observed, after(age_s)) == left_s


def test_weak_proof_waits_for_the_phase_of_another_ended_pod() -> None:
    of = job(RUNNING)
    # The kubelet reports the end of its container first.
    peer = make_pod(of, Replica("master", 0), state=exited(137), restart_policy="Never")
    observed = seen(of, failed_pod(of), peer)
    assert evidence_wait_left_s(of, (ended(),), observed, after(EVIDENCE_WAIT_S)) == PHASE_WAIT_S


def test_end_without_a_time_does_not_wait_for_ever() -> None:
    of = job(RUNNING)
    timeless = make_pod(of, WORKER, phase="Failed", restart_policy="Never")
    assert evidence_wait_left_s(of, (ended(),), seen(of, timeless), NOW) == 0


def test_job_without_a_policy_neither_waits_nor_decides() -> None:
    of = make_job(training_job("PyTorchJob", Master=1, Worker=1))
    status = attrs.evolve(of.status, attempts=(ended(),))
    assert evidence_wait_left_s(of, status.attempts, seen(of, failed_pod(of)), NOW) == 0
    assert new_decision(of, status, seen(of)) is None
