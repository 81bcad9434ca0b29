"""Judgements of single ended runs: in one plan, each is judged once and few outputs are read."""

import datetime
from collections.abc import Sequence

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import UID
from dlctl.reconcilers.failures.ended_runs import EndedRun
from dlctl.reconcilers.failures.first_cause import Judgement, judgements


@attrs.frozen
class RunJudge:
    """Judges the ended runs of a job in one plan, and remembers the results until its end."""

    job: Job
    now: datetime.datetime
    # By the pod, and by the end of its run.
    _found: dict[tuple[UID, datetime.datetime], Judgement] = attrs.field(init=False, factory=dict)

    @property
    def has_unread(self) -> bool:
        """Return whether there were too many outputs to read them all."""
        return any(one.is_unread for one in self._found.values())

    def judge(self, runs: Sequence[EndedRun]) -> None:
        """Judge some runs, the first to end first; of those with an output, a few are read."""
        new = {key: run for run in runs if (key := self._key(run)) not in self._found}
        found = judgements(self.job, [run.failed_replica for run in new.values()], self.now)
        self._found.update(zip(new, found, strict=True))

    def of(self, run: EndedRun) -> Judgement:
        """Return what a run shows that was judged."""
        return self._found[self._key(run)]

    def shows_cause(self, runs: Sequence[EndedRun]) -> bool:
        """Return whether one of some runs shows a cause, and not what may be a consequence."""
        self.judge(runs)
        return any(self.of(run).shows_cause for run in runs)

    def _key(self, run: EndedRun) -> tuple[UID, datetime.datetime]:
        return run.failed_replica.pod.metadata.uid, run.failed_replica.time(self.now)
