"""Creates children in stages, services before pods; each at most once by its name.

Pods of a small new job do not wait for its services while the API server is busy.

The name prevents duplicates: if the response to a create was lost, the retry finds the child. I/O
only; the plan decides what to create.
"""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

import attrs

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import (
    BATCH_JOBS,
    MANAGED_BY_SELECTOR,
    PODS,
    ROLE_BINDINGS,
    SERVICES,
    UID,
    Object,
    ObjectKey,
    Resource,
)
from dlctl.controller.object_writer import MAX_PARALLEL, ObjectWriter
from dlctl.errors import InvalidJobError, truncated
from dlctl.kube.errors import (
    AlreadyExistsError,
    ApiError,
    NotFoundError,
    RequestError,
)
from dlctl.reconcilers.children.adoption import label_child
from dlctl.reconcilers.children.rejection import Rejection, RejectionCause, rejection_of
from dlctl.reconcilers.content_errors import ContentError, Step, wrap_content_errors
from dlctl.tasks import map_all

# Up to this number of pods, none is created alone before the others.
_FEW_PODS: Final = 8


@attrs.frozen
class Child:
    """One object to create for a job."""

    resource: Resource
    key: ObjectKey
    # Rendered just in time: each of N pods may contain N addresses.
    body: Callable[[], ReadOnlyJSON]
    # A name for everything that a pod shares with its siblings; empty for other children.
    template: str = ""
    # As in Dependent.
    may_exist: bool = False
    may_be_shared: bool = False


@attrs.frozen
class CreateResult:
    """The result of a batch: names of created children by resource, and rejections by name."""

    names: Mapping[Resource, list[str]] = attrs.field(factory=dict)
    rejections: Mapping[str, Rejection] = attrs.field(factory=dict)
    # Objects of others that are used as they are.
    preexisting: frozenset[tuple[Resource, str]] = frozenset()

    @property
    def invalid(self) -> Rejection | None:
        """Return the first rejection that no retry can change, if any."""
        return next(
            (r for r in self.rejections.values() if r.cause is RejectionCause.INVALID), None
        )


class _Existing(enum.Enum):
    """Why a child need not be created."""

    # By an earlier request, or by the previous operator.
    ALREADY_CREATED = enum.auto()
    # An object of somebody else takes its place.
    PREEXISTING = enum.auto()


@attrs.define
class _Batch:
    """The outcome of creating children so far."""

    names: dict[Resource, list[str]]
    pods: list[Object] = attrs.field(factory=list)
    rejections: dict[str, Rejection] = attrs.field(factory=dict)
    preexisting: set[tuple[Resource, str]] = attrs.field(factory=set)
    failures: list[RequestError] = attrs.field(factory=list)

    @property
    def is_stopped(self) -> bool:
        return bool(self.rejections or self.failures)

    def add(self, child: Child, answer: Object | _Existing | Rejection) -> None:
        if isinstance(answer, Rejection):
            # A service may have the name of its pod, which is nothing without it.
            if child.resource == SERVICES or child.key.name not in self.rejections:
                self.rejections[child.key.name] = answer
        elif isinstance(answer, Object):
            self.names.setdefault(child.resource, []).append(child.key.name)
            if child.resource == PODS:
                self.pods.append(answer)
        elif answer is _Existing.PREEXISTING:
            self.preexisting.add((child.resource, child.key.name))


class _NotCurrentError(Exception):
    """A write was not sent: its plan is no longer current."""


@attrs.frozen
class Creator:
    """Creates the children of a job and records the writes that the stores do not show yet.

    ``at_once`` lets few pods follow their services without waiting for them.
    """

    writer: ObjectWriter
    at_once: bool = False

    async def create(
        self,
        owner: UID,
        children: Iterable[Child],
        rejected: Mapping[str, Rejection],
        is_current: Callable[[], bool],
        created: dict[Resource, list[str]],
    ) -> CreateResult:
        """Create in stages; stop at the first rejection, or once it is not current.

        ``rejected`` has the children that the last attempt could not create, by name. One of them
        is tried alone first, so that another rejection costs one request. The names of children are
        added to ``created``, also if it raises or is cancelled later.

        :raises NamespaceTerminatingError: if the job is about to be deleted, too.
        :raises RequestError: if a retry may help.
        """
        batch = _Batch(created)

        async def create(child: Child) -> None:
            if batch.is_stopped or not is_current():
                return
            try:
                batch.add(child, await self._create_one(owner, child, is_current))
            except _NotCurrentError:
                # Its job was deleted or changed while a busy server kept the write waiting.
                return
            except RequestError as error:
                # The others are on their way: cancelled, a slow one would not succeed in any retry.
                batch.failures.append(error)

        for stage in creation_stages(children, rejected, at_once=self.at_once):
            await map_all(create, stage, limit=MAX_PARALLEL)
            if batch.is_stopped:
                break
        if any(one.resource == SERVICES for one in batch.rejections.values()):
            await self._delete_pods(owner, batch)
        if batch.failures and not batch.rejections:
            raise batch.failures[0]
        return CreateResult(batch.names, batch.rejections, frozenset(batch.preexisting))

    async def _delete_pods(self, owner: UID, batch: _Batch) -> None:
        """Delete the pods of a batch, which would not find each other, as far as that succeeds."""

        async def delete(pod: Object) -> None:
            try:
                await self.writer.delete(owner, PODS, pod)
            except RequestError as error:
                batch.failures.append(error)

        await map_all(delete, batch.pods, limit=MAX_PARALLEL)
        batch.names.pop(PODS, None)

    async def _create_one(
        self, owner: UID, child: Child, is_current: Callable[[], bool]
    ) -> Object | _Existing | Rejection:
        resource, render = child.resource, partial(_render, child, is_current)
        try:
            created = await self.writer.client.create(resource, child.key.namespace, render, Object)
            labelled = await label_child(self.writer, owner, resource, created)
            return created if labelled else _unlabelled(child)
        except (ContentError, InvalidJobError) as error:
            message = truncated(f"{_title(child)} cannot be rendered: {error}")
            return Rejection(RejectionCause.INVALID, resource, message, message, error)
        except AlreadyExistsError as error:
            return await self._existing(owner, child, str(error))
        except ApiError as error:
            if (rejection := rejection_of(resource, child.key.name, error)) is None:
                raise
            return rejection

    async def _existing(self, owner: UID, child: Child, error: str) -> _Existing | Rejection:
        """Return whether the owner already has the child, or why its name is taken."""
        cause = RejectionCause.ALREADY_EXISTS
        try:
            existing = await self.writer.client.get(child.resource, child.key, Object)
        except NotFoundError:
            return Rejection(cause, child.resource, f"{_title(child)} is being deleted", error)
        controller = existing.metadata.controller
        if controller and controller.uid == owner:
            # An earlier create that the store does not show yet, or a child of the previous
            # operator, which the store never shows without dlctl's label.
            labelled = await label_child(self.writer, owner, child.resource, existing)
            return _Existing.ALREADY_CREATED if labelled else _unlabelled(child)
        is_usable = child.may_be_shared or (child.may_exist and controller is None)
        if is_usable and not existing.metadata.is_terminating:
            return _Existing.PREEXISTING
        holder = f"{controller.kind} {controller.name}" if controller else "no controller"
        message = f"the name of {_title(child)} is taken: the existing object belongs to {holder}"
        return Rejection(cause, child.resource, message, error)


def _render(child: Child, is_current: Callable[[], bool]) -> ReadOnlyJSON:
    """Return the body of a child when it is the turn of its write.

    :raises _NotCurrentError: if it is not to be created any more.
    """
    if not is_current():
        raise _NotCurrentError
    with wrap_content_errors(Step.RENDERING):
        return child.body()


def _unlabelled(child: Child) -> Rejection:
    """Return why a child that exists counts as rejected: the stores do not show it."""
    message = (
        f"{_title(child)} lacks the label {MANAGED_BY_SELECTOR}: a webhook or policy removes it"
    )
    return Rejection(RejectionCause.DENIED, child.resource, message, message)


def _title(child: Child) -> str:
    return f"{child.resource.kind.lower()} {child.key.name}"


class _Stage(enum.IntEnum):
    """The order of creation."""

    DEPENDENTS = enum.auto()
    # Only to roles that exist.
    ROLE_BINDINGS = enum.auto()
    RETRIED_SERVICE = enum.auto()
    SERVICES = enum.auto()
    RETRIED_POD = enum.auto()
    FIRST_PODS = enum.auto()
    PODS = enum.auto()
    # Their pods connect to the others.
    JOBS = enum.auto()


_STAGES: Final = {ROLE_BINDINGS: _Stage.ROLE_BINDINGS, BATCH_JOBS: _Stage.JOBS}


def creation_stages(
    children: Iterable[Child], rejected: Mapping[str, Rejection], *, at_once: bool
) -> Iterator[list[Child]]:
    """Yield what pods need, their services, a pod of each template, the others, and Jobs.

    Before the services and before the pods comes one that was rejected before, alone. Single ones
    expose a broken template or an exceeded quota at the first request, not at the thousandth; a few
    pods are created together, and ``at_once`` with their services unless one was rejected before.
    """
    children = list(children)
    few = sum(child.resource == PODS for child in children) <= _FEW_PODS
    at_once &= few and not any(_was_rejected(child, rejected) for child in children)
    # The first of each, in the order of the children.
    backwards = children[::-1]
    retried = {child.resource: child for child in backwards if _was_rejected(child, rejected)}
    first = {child.template: child for child in backwards if child.resource == PODS}

    def stage_of(child: Child) -> _Stage:
        if child.resource not in (SERVICES, PODS):
            return _STAGES.get(child.resource, _Stage.DEPENDENTS)
        is_retried = child is retried.get(child.resource)
        if child.resource == SERVICES:
            return _Stage.RETRIED_SERVICE if is_retried else _Stage.SERVICES
        if is_retried:
            return _Stage.RETRIED_POD
        if at_once:
            return _Stage.SERVICES
        is_first = not few and child is first[child.template]
        return _Stage.FIRST_PODS if is_first else _Stage.PODS

    by_stage: dict[_Stage, list[Child]] = {}
    for child in children:
        by_stage.setdefault(stage_of(child), []).append(child)
    for _, stage_children in sorted(by_stage.items()):
        yield stage_children


def _was_rejected(child: Child, rejected: Mapping[str, Rejection]) -> bool:
    # A replica's pod and service have one name.
    rejection = rejected.get(child.key.name)
    return rejection is not None and rejection.resource == child.resource
