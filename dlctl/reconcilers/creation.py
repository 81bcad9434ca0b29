"""Creating children: few at first, then in parallel, and each under its name only once.

A name is the guard against duplicates: a create whose answer was lost is found to have been done
when it is tried again. I/O only; what to create is decided elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, UID, Object, ObjectKey, Resource
from dlctl.kube.client import Client
from dlctl.kube.errors import (
    AlreadyExistsError,
    ForbiddenError,
    NamespaceTerminatingError,
    NotFoundError,
)
from dlctl.reconcilers.expectations import Expectations
from dlctl.tasks import map_all

JSON = Mapping[str, Any]
# A broken template or a full quota is found out by the first request and not by the thousandth.
FIRST_BATCH: Final = 1
PARALLEL: Final = 64


@attrs.frozen
class Child:
    """One object to create for a job."""

    resource: Resource
    key: ObjectKey
    # Rendered when its turn comes: each of N pods may hold N addresses.
    body: Callable[[], JSON]


@attrs.frozen
class Created:
    """What has become of a batch: names by resource, and the children that had to wait."""

    made: Mapping[Resource, list[str]]
    blocked: Mapping[str, str]
    # What the server said to those that had to wait.
    refused: Mapping[Resource, list[str]] = attrs.field(factory=dict)


@attrs.frozen
class _Waits:
    """Why a child has to wait, and what the server said; nothing if it was there already."""

    why: str
    error: str


@attrs.frozen
class Creator:
    """Creates the children of jobs and remembers which versions the stores have yet to show."""

    client: Client
    expectations: Expectations

    async def create(self, owner: UID, children: Iterable[Child]) -> Created:
        """Create in batches of doubling size; after a batch with a refusal, no further one.

        :raises InvalidError: if the server will never take a child.
        :raises NamespaceTerminatingError: if the job is about to go, too.
        :raises ApiError, UnreachableError: if trying again may help.
        """
        made: dict[Resource, list[str]] = {}
        blocked: dict[str, str] = {}
        refused: dict[Resource, list[str]] = {}
        for batch in _batches(list(children)):
            answers = await map_all(
                lambda child: self._create_one(owner, child), batch, limit=PARALLEL
            )
            for child, answer in zip(batch, answers, strict=True):
                if answer is None:
                    made.setdefault(child.resource, []).append(child.key.name)
                elif answer.why:
                    blocked[child.key.name] = answer.why
                    refused.setdefault(child.resource, []).append(answer.error)
            if blocked:
                break
        return Created(made, blocked, refused)

    async def _create_one(self, owner: UID, child: Child) -> _Waits | None:
        """Return None if the child was made, else why it has to wait, if it is not there."""
        try:
            created = await self.client.create(
                child.resource, child.key.namespace, child.body(), Object
            )
        except AlreadyExistsError as error:
            return _Waits(await self._check_owner(owner, child), str(error))
        except NamespaceTerminatingError:
            raise
        except ForbiddenError as error:
            why = f"{child.resource.kind.lower()} {child.key.name} is not allowed: {error}"
            return _Waits(why, str(error))
        self.expectations.wrote(owner, child.resource, created.metadata.resource_version)
        return None

    async def _check_owner(self, owner: UID, child: Child) -> str:
        """Return why a child cannot be made whose name is taken, or "" if it is the owner's."""
        try:
            there = await self.client.get(child.resource, child.key, Object)
        except NotFoundError:
            return f"{child.resource.kind.lower()} {child.key.name} is just being removed"
        controller = there.metadata.controller
        if controller and controller.uid == owner:
            # An earlier try of ours that the store has not shown yet; or the work of the operator
            # that was here before, which no store of ours will show without our label.
            if there.metadata.label(MANAGED_BY_LABEL) != MANAGED_BY:
                there = await self.client.patch(child.resource, child.key, adoption(there), Object)
            self.expectations.wrote(owner, child.resource, there.metadata.resource_version)
            return ""
        holder = f"{controller.kind} {controller.name}" if controller else "nobody's controller"
        return (
            f"the name of {child.resource.kind.lower()} {child.key.name} is taken: "
            f"the one there belongs to {holder}"
        )


def adoption(child: Object) -> JSON:
    """Return the patch that makes a job's child one of ours, if it still is as it was read.

    The UID would be no guard that can be told from a bad patch: a wrong one is Invalid.
    """
    metadata = child.metadata
    return {
        "metadata": {
            "name": metadata.name,
            "resourceVersion": metadata.resource_version,
            "labels": {MANAGED_BY_LABEL: MANAGED_BY},
        }
    }


def _batches(children: list[Child]) -> Iterator[list[Child]]:
    start, size = 0, FIRST_BATCH
    while start < len(children):
        yield children[start : start + size]
        start += size
        size *= 2
