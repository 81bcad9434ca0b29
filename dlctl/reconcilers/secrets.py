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
from dlctl.reconcilers.creation import Refusal, refusal_of

_DOUBT_S: Final = 2.0
_DOUBTS: Final = 5


@attrs.define
class Secrets:
    """What is known of one job's secrets: of no consequence if lost."""

    made: bool = False
    doubts: int = 0
    # Those that the server has refused at the last try, by name.
    refusals: Mapping[str, Refusal] = attrs.field(factory=dict)


async def make(
    client: Client, job: Job, objects: Iterable[tuple[Resource, dict[str, Any]]], known: Secrets
) -> float:
    """Make the secrets of a job; return the seconds to wait before the next try.

    What the server refuses is noted in ``known``.
    """
    taken = False
    refusals: dict[str, Refusal] = {}
    for resource, body in objects:
        try:
            await client.create(resource, job.key.namespace, body)
        except AlreadyExistsError:
            taken = True
        except ApiError as error:
            name = body["metadata"]["name"]
            if (refusal := refusal_of(resource, name, error)) is None:
                raise
            refusals[name] = refusal
    known.refusals = refusals
    if refusals:
        return 0.0
    is_new = known.doubts > 0 or not job.status.replica_statuses
    if taken and is_new and known.doubts < _DOUBTS:
        known.doubts += 1
        return _DOUBT_S
    known.made = True
    return 0.0
