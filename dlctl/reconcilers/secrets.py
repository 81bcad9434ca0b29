"""Secrets of jobs, which the controller makes and may not read.

Whose one is that has the name already cannot be asked. It is ours, or goes soon with the job that
had the name before; so it is tried some more times before pods that mount it are made.
"""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import Resource
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError

_DOUBT_S: Final = 2.0
_DOUBTS: Final = 5


@attrs.define
class Secrets:
    """What is known of one job's secrets: of no consequence if lost."""

    made: bool = False
    doubts: int = 0


async def make(
    client: Client, job: Job, objects: Iterable[tuple[Resource, dict[str, Any]]], known: Secrets
) -> float:
    """Make the secrets of a job; return the seconds after which it is to be tried again."""
    taken = False
    for resource, body in objects:
        try:
            await client.create(resource, job.key.namespace, body)
        except AlreadyExistsError:
            taken = True
    is_new = known.doubts > 0 or not job.status.replica_statuses
    if taken and is_new and known.doubts < _DOUBTS:
        known.doubts += 1
        return _DOUBT_S
    known.made = True
    return 0.0
