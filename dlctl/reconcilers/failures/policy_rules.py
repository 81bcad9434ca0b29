"""The decision of a job's failure policy about the end of an attempt. Pure."""

import attrs

from dlctl.api.job import replica_type
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.failure_policy import (
    FAIL_JOB_ACTION,
    REACHED_MAX_RESTARTS,
    ExitCodes,
    FailureAction,
    FailurePolicy,
    FailureRule,
)
from dlctl.api.status.verdict import Verdict


@attrs.frozen
class Decision:
    """The reaction to a failure."""

    action: FailureAction
    # True if it counts towards the maximum.
    counts: bool = False
    # The reason of the job's failure; empty for restarts.
    reason: str = ""
    # The name of the rule that matched; empty if it has none.
    rule: str = ""

    @property
    def by_rule(self) -> str:
        """Return the end of a sentence that names the rule."""
        return f" (rule {self.rule})" if self.rule else ""


def decide(
    policy: FailurePolicy, verdict: Verdict, pod: Pod | None, container: str, counted: int
) -> Decision:
    """Return what the policy says about a failure.

    ``pod`` is the one to blame, if it still exists, and ``container`` its training container.
    ``counted`` restarts have counted before. A cause that is not the user's counts only by a rule
    that names it.
    """
    rules = (rule for rule in policy.rules if _matches(rule, verdict, pod, container))
    rule = next(rules, None)
    action, name = (rule.action, rule.name) if rule else (FailureAction.RESTART_JOB, "")
    if action is FailureAction.FAIL_JOB:
        return Decision(action, reason=FAIL_JOB_ACTION, rule=name)
    is_forgiven = verdict.cause.is_infrastructure and not (rule and verdict.cause in rule.causes)
    counts = action.counts and not is_forgiven
    if counts and counted >= policy.max_restarts:
        return Decision(FailureAction.FAIL_JOB, reason=REACHED_MAX_RESTARTS, rule=name)
    return Decision(action, counts, rule=name)


def _matches(rule: FailureRule, verdict: Verdict, pod: Pod | None, container: str) -> bool:
    if rule.target_replicas and replica_type(verdict.replica) not in rule.target_replicas:
        return False
    if rule.causes and verdict.cause not in rule.causes:
        return False
    if rule.pod_conditions and not any(
        _has_condition(pod, type_, status) for type_, status in rule.pod_conditions
    ):
        return False
    return rule.exit_codes is None or _matches_exit_code(rule.exit_codes, verdict, pod, container)


def _has_condition(pod: Pod | None, type_: str, status: str) -> bool:
    found = pod.condition(type_) if pod else None
    return found is not None and found.status == status


def _matches_exit_code(
    wanted: ExitCodes, verdict: Verdict, pod: Pod | None, container: str
) -> bool:
    """Return whether the exit code matches; as in batch/v1, 0 never does."""
    if wanted.container in ("", container):
        code = verdict.exit_code
    else:
        code = _exit_code(pod, wanted.container)
    return bool(code) and (code in wanted.values) is not wanted.is_negated


def _exit_code(pod: Pod | None, container: str) -> int | None:
    terminated = pod.terminated(container) if pod else None
    return terminated.exit_code if terminated else None
