"""Attempts of a job and the verdicts on them, as lines for people. Pure."""

import datetime
from collections.abc import Iterator, Sequence

from dlctl.api.status.verdict import Attempt, Verdict
from dlctl.cli.jobs.tables import duration


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the cause in a sentence, how well it is proved, and who ended with it."""
    yield verdict.headline
    pod = f"; pod {verdict.pod}" if verdict.pod else ""
    yield f"cause: {verdict.cause}, {verdict.confidence.lower()} confidence{pod}"
    if verdict.collateral_count:
        yield f"ended with it: {verdict.describe_collateral()}"


def attempt_lines(attempts: Sequence[Attempt], now: datetime.datetime) -> Iterator[str]:
    """Yield a line for each attempt, if there are several."""
    if len(attempts) > 1:
        yield from (f"{one.number}: {_outcome(one, now)}" for one in attempts)


def _outcome(attempt: Attempt, now: datetime.datetime) -> str:
    ran_s = ((attempt.end_time or now) - attempt.start_time).total_seconds()
    if attempt.end_time is None:
        return f"runs for {duration(ran_s)}"
    verdict = attempt.verdict
    cause = verdict.located_cause if verdict else "no failure"
    lost = "" if attempt.lost_s is None else f", ran again after {duration(attempt.lost_s)}"
    return f"ran {duration(ran_s)}, ended by {cause}{lost}"
