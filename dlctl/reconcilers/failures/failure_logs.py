"""The logs of failed pods that verdicts wait for, for a short time.

Reconcilers do not wait themselves: logs are read in the background, and a read log enqueues its
job. A log that cannot be read in time counts as none. Losing what is kept here changes no decision.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import attrs

from dlctl import logs
from dlctl.api.job import Job
from dlctl.api.meta import UID, ObjectKey
from dlctl.clock import Clock
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.reconcilers.content_errors import Step, wrap_content_errors
from dlctl.reconcilers.failures.log_requests import LogRequests, LogTailRequest, log_requests
from dlctl.reconcilers.failures.log_tails import READ_TIMEOUT_S, text_of
from dlctl.reconcilers.failures.tail_cache import TailCache
from dlctl.reconcilers.large_jobs.threads import planning_cost, run_step
from dlctl.reconcilers.observe import Observed

logger = logging.getLogger(__name__)
# The limit for all jobs together.
MAX_CONCURRENT_READS: Final = 16


@attrs.frozen
class LogsOfJob:
    """The parts read of a job's logs, and how long to wait for the rest; 0 if not at all."""

    texts: Mapping[UID, str] = attrs.field(factory=dict)
    wait_s: float = 0.0


@attrs.define(eq=False)
class _State:
    """The requests of a job, with the time from which their logs are not waited for."""

    deadlines: dict[LogTailRequest, float] = attrs.field(factory=dict)
    has_reported_error: bool = False


@attrs.define(eq=False)
class FailureLogs:
    """The logs of the jobs of one kind that have failed and do not run again yet."""

    tasks: BackgroundTasks[ObjectKey, LogTailRequest]
    # The maximum number of pods of an attempt whose logs are read.
    max_count: int
    clock: Clock
    # The logs that its tasks, and those of other kinds, have read.
    cache: TailCache
    _states: dict[ObjectKey, _State] = attrs.field(init=False, factory=dict)

    async def of(self, job: Job, observed: Observed) -> LogsOfJob:
        """Return the logs that the next verdict on a job needs; they are read in the background."""
        state, now = self._states.get(job.key), self.clock.now()
        known = frozenset(request.uid for request in state.deadlines) if state else frozenset()
        with wrap_content_errors(Step.PLANNING):
            cost = planning_cost(job, observed)
        choose = partial(log_requests, job, observed, self.max_count, now, known)
        wanted = await run_step(Step.PLANNING, job.key.namespace, cost, choose)
        if not wanted.all:
            if state is not None:
                self.forget(job.key)
            return LogsOfJob()
        state = self._states.setdefault(job.key, _State())
        monotonic = self.clock.monotonic()
        before = state.deadlines
        state.deadlines = _deadlines(wanted, before, monotonic + READ_TIMEOUT_S)
        self.tasks.set_wanted(job.key, wanted.all)
        self._discard(before.keys() - state.deadlines.keys())
        return self._read(job.key, state, wanted, monotonic)

    def forget(self, job: ObjectKey) -> None:
        """Drop the logs of a job, and read no more of them."""
        if state := self._states.pop(job, None):
            self.tasks.forget(job)
            self._discard(state.deadlines)

    def _read(self, job: ObjectKey, state: _State, wanted: LogRequests, now: float) -> LogsOfJob:
        outcomes = self.tasks.outcomes(job)
        for outcome in outcomes.values():
            if outcome.error:
                self._report(job, state, outcome.error)
        read = {one for one, outcome in outcomes.items() if not outcome.error}
        pending = state.deadlines.keys() - outcomes.keys()
        unread = state.deadlines.keys() - read
        is_overdue = any(state.deadlines[one] <= now for one in unread)
        # Kubelets that do not answer delay a job once.
        awaited = pending & set(wanted.new if is_overdue else wanted.all)
        wait_s = max((state.deadlines[one] - now for one in awaited), default=0.0)
        tails = {one: self.cache.get(one) for one in outcomes if one in read}
        texts = {one.uid: text_of(tail) for one, tail in tails.items() if tail is not None}
        return LogsOfJob(texts, max(wait_s, 0.0))

    def _discard(self, requests: Iterable[LogTailRequest]) -> None:
        for request in requests:
            self.cache.discard(request)

    def _report(self, job: ObjectKey, state: _State, error: str) -> None:
        if not state.has_reported_error:
            state.has_reported_error = True
            logger.warning(
                "log of a failed pod not read", extra={logs.KEY: str(job), logs.ERROR: error}
            )


def _deadlines(
    wanted: LogRequests, before: Mapping[LogTailRequest, float], deadline: float
) -> dict[LogTailRequest, float]:
    """Return until when to wait for each log; one that ends later does not delay the verdict."""
    first = min((before[one] for one in wanted.new if one in before), default=deadline)
    late = {one: before.get(one, deadline) for one in wanted.late}
    return late | dict.fromkeys(wanted.new, first)
