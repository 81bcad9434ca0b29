"""Secrets of jobs, which the controller makes and may not read.

Whose one is that has the name already cannot be asked. It is ours, or goes soon with the job that
had the name before; so it is tried some more times before pods that mount it are made.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import Resource
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError, ApiError
from dlctl.reconcilers.children.creation import Rejection, rejection_of

_CONFLICT_RETRY_S: Final = 2.0
_MAX_NAME_CONFLICTS: Final = 5


@attrs.define
class SecretState:
    """What is known of one job's secrets: of no consequence if lost."""

    created: bool = False
    name_conflicts: int = 0
    # Those that the server has refused at the last try, by name.
    rejections: Mapping[str, Rejection] = attrs.field(factory=dict)


async def create_secrets(
    client: Client, job: Job, objects: Iterable[tuple[Resource, dict[str, Any]]], state: SecretState
) -> float:
    """Make the secrets of a job; return the seconds to wait before the next try.

    What the server refuses is noted in ``known``.
    """
    name_conflict = False
    rejections: dict[str, Rejection] = {}
    for resource, body in objects:
        try:
            await client.create(resource, job.key.namespace, body)
        except AlreadyExistsError:
            name_conflict = True
        except ApiError as error:
            name = body["metadata"]["name"]
            if (rejection := rejection_of(resource, name, error)) is None:
                raise
            rejections[name] = rejection
    state.rejections = rejections
    if rejections:
        return 0.0
    is_new = state.name_conflicts > 0 or not job.status.replica_statuses
    if name_conflict and is_new and state.name_conflicts < _MAX_NAME_CONFLICTS:
        state.name_conflicts += 1
        return _CONFLICT_RETRY_S
    state.created = True
    return 0.0
