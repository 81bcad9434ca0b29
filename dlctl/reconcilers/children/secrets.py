"""Secrets of jobs, which the controller creates and cannot read.

The owner of an existing Secret with the same name is therefore unknown. It belongs to this job, or
to an earlier job of the same name and is about to be deleted; so creation is retried a few times
before pods that mount the Secret are created. One that remains after that may belong to somebody
else, and is reported.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import Resource
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError, ApiError
from dlctl.reconcilers.children.rejection import Rejection, rejection_of

_CONFLICT_RETRY_S: Final = 2.0
_MAX_NAME_CONFLICTS: Final = 5
# Long enough for the slices in which the pods of a large job are created.
_SEEN_FOR_S: Final = 10.0


@attrs.define
class SecretState:
    """The state of one job's secrets, kept in memory; losing it changes no decision."""

    # When they were last known to exist.
    seen_s: float = float("-inf")
    name_conflicts: int = 0
    # Secrets that are used although they may be somebody else's.
    of_unknown_owner: Sequence[str] = ()
    # The rejections of the last attempt, by name.
    rejections: Mapping[str, Rejection] = attrs.field(factory=dict)

    @property
    def were_seen(self) -> bool:
        return self.seen_s > float("-inf")

    def is_due(self, now_s: float) -> bool:
        """Return whether a new pod needs them created: somebody may have deleted them."""
        return now_s - self.seen_s > _SEEN_FOR_S


async def create_secrets(
    client: Client,
    job: Job,
    objects: Iterable[tuple[Resource, dict[str, Any]]],
    state: SecretState,
    now_s: float,
) -> float:
    """Create the secrets of a job; return the seconds to wait before the next attempt.

    Rejections, and Secrets of unknown owners, are stored in ``state``.
    """
    conflicts: list[str] = []
    rejections: dict[str, Rejection] = {}
    for resource, body in objects:
        name = body["metadata"]["name"]
        try:
            await client.create(resource, job.key.namespace, body)
        except AlreadyExistsError:
            conflicts.append(name)
        except ApiError as error:
            if (rejection := rejection_of(resource, name, error)) is None:
                raise
            rejections[name] = rejection
    state.rejections = rejections
    if rejections:
        return 0.0
    # A restart of the whole job has no replica statuses either.
    is_first = not state.were_seen and not job.status.replica_statuses
    is_new = state.name_conflicts > 0 or is_first
    if conflicts and is_new and state.name_conflicts < _MAX_NAME_CONFLICTS:
        state.name_conflicts += 1
        return _CONFLICT_RETRY_S
    state.of_unknown_owner = conflicts if is_new else ()
    state.seen_s, state.name_conflicts = now_s, 0
    return 0.0
