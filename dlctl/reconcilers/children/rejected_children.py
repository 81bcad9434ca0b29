"""The children of one job that could not be created: their messages, and when to retry.

Nothing is created before the back-off ends, whatever triggers a reconciliation: otherwise a
rejection whose text varies would trigger the next attempt through the job's own status. Names that
were taken by objects of the stores are free as soon as the stores no longer show those.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs

from dlctl.api.meta import Resource
from dlctl.api.status.waiting import Waiting
from dlctl.backoff import Backoff
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.children.creation import CreateResult
from dlctl.reconcilers.children.rejection import Rejection, RejectionCause, without_numbers
from dlctl.reconcilers.children.rejection_reasons import rejection_waiting

# The cap is short enough to notice a freed quota or a fixed webhook soon.
BACKOFF: Final = Backoff(base_s=5.0, cap_s=120.0)

# Returns whether a store shows an object of a resource under a name in the job's namespace.
NameTaken = Callable[[Resource, str], bool]


def no_name_taken(_resource: Resource, _name: str) -> bool:
    """Return False: without stores, no name counts as taken."""
    return False


@attrs.define
class RejectedChildren:
    """The rejected children of one job, kept in memory: losing them costs another attempt."""

    by_name: Mapping[str, Rejection] = attrs.field(factory=dict)
    # Why the job fails for good, until its status says so; empty if it does not.
    _permanent_message: str = ""
    _generation: int = 0
    _attempts: int = 0
    _retry_at_s: float = float("-inf")
    # True if the stores showed the holder of each of their names.
    _holders_shown: bool = False

    @property
    def waiting(self) -> Waiting | None:
        """Return why the first of them waits, with a text that is stable while the reason is."""
        first = min(self.by_name, key=lambda name: (len(name), name), default=None)
        return None if first is None else rejection_waiting(self.by_name[first])

    def left_s(
        self, generation: int, now_s: float, is_name_taken: NameTaken = no_name_taken
    ) -> float | None:
        """Return the seconds until the next attempt; None if no child waits.

        A changed spec is tried at once, and so are names whose holders are all gone.
        """
        if not self.by_name:
            return None
        freed = self._holders_shown and not any(self._shown(is_name_taken))
        if freed or generation != self._generation:
            return 0.0
        return max(self._retry_at_s - now_s, 0.0)

    def permanent_failure(self, generation: int) -> InvalidJobError | None:
        """Return why a job with this spec fails; None if retries may help, or its pods have run."""
        if not self._permanent_message or generation != self._generation:
            return None
        return InvalidJobError(self._permanent_message, field="spec")

    def update(
        self,
        result: CreateResult,
        generation: int,
        now_s: float,
        *,
        has_run: bool,
        is_name_taken: NameTaken = no_name_taken,
    ) -> bool:
        """Store the result of an attempt; return whether other children wait than before."""
        changed = result.rejections.keys() != self.by_name.keys()
        known = self.by_name if generation == self._generation else {}
        if result.names or generation != self._generation:
            self._attempts = 0
        self._generation = generation
        invalid = None if has_run else result.invalid
        self._permanent_message = invalid.server_message if invalid else ""
        self.by_name = {
            name: _keep_if_same(known.get(name), rejection)
            for name, rejection in result.rejections.items()
        }
        if self.by_name:
            self._attempts += 1
            self._retry_at_s = now_s + BACKOFF.delay_s(self._attempts)
        self._holders_shown = all(self._shown(is_name_taken))
        return changed

    def _shown(self, is_name_taken: NameTaken) -> Iterator[bool]:
        """Yield for each child whether its name is taken by an object that a store shows."""
        for name, rejection in self.by_name.items():
            already_exists = rejection.cause is RejectionCause.ALREADY_EXISTS
            yield already_exists and is_name_taken(rejection.resource, name)


def _keep_if_same(old: Rejection | None, new: Rejection) -> Rejection:
    """Return the old rejection if the new one differs only in an id or a count."""
    if old is not None and (old.cause, without_numbers(old.message)) == (
        new.cause,
        without_numbers(new.message),
    ):
        return old
    return new
