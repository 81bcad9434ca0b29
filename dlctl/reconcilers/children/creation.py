"""Creates children in stages, services before pods; each at most once by its name.

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
    PODS,
    ROLE_BINDINGS,
    SERVICES,
    UID,
    Object,
    ObjectKey,
    Resource,
)
from dlctl.controller.object_writer import ObjectWriter
from dlctl.errors import InvalidJobError
from dlctl.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ForbiddenError,
    InvalidError,
    NamespaceTerminatingError,
    NotFoundError,
    RequestError,
    ThrottledError,
)
from dlctl.reconcilers.children.adoption import label_child
from dlctl.reconcilers.content_errors import ContentError, wrap_content_errors
from dlctl.tasks import map_all

# Concurrent requests for one job; if the server rejects all of them, no more than these are wasted.
MAX_PARALLEL: Final = 32
# Not worth a request of their own before them.
_FEW_PODS: Final = 8
# Messages of admission, which the administrator controls and which may accept the same child later;
# the code and reason are up to each webhook.
_ADMISSION_ERRORS: Final = ('admission webhook "', "failed calling webhook", "AdmissionPolicy")
# Authentication, timeouts, conflicts, throttling: unrelated to the child.
_UNRELATED_CODES: Final = frozenset({401, 408, 409, 410, 429})
# Limits the server's message, which may quote what a tenant wrote.
MAX_MESSAGE_CHARS: Final = 1024


@attrs.frozen
class Child:
    """One object to create for a job."""

    resource: Resource
    key: ObjectKey
    # Rendered just in time: each of N pods may contain N addresses.
    body: Callable[[], ReadOnlyJSON]
    # Of a pod: names what its siblings share.
    template: str = ""
    # Whether an object of this name that nobody controls is used as it is.
    may_exist: bool = False


class RejectionCause(enum.Enum):
    """Why a child was not created."""

    # Another object has the name.
    ALREADY_EXISTS = enum.auto()
    # Quota or authorization denies it, for now.
    FORBIDDEN = enum.auto()
    # Admission denies it, or the server cannot decode the child.
    DENIED = enum.auto()
    # The server does not serve the resource, or no longer does.
    NOT_SERVED = enum.auto()
    # The same child is never accepted, or it cannot be rendered.
    INVALID = enum.auto()


@attrs.frozen
class Rejection:
    """A child that was not created: the cause and the server's message."""

    cause: RejectionCause
    resource: Resource
    message: str
    server_message: str
    # Set if the child could not be rendered.
    exception: ContentError | InvalidJobError | None = None


@attrs.frozen
class CreateResult:
    """The result of a batch: names of created children by resource, and rejections by name."""

    names: Mapping[Resource, list[str]] = attrs.field(factory=dict)
    rejections: Mapping[str, Rejection] = attrs.field(factory=dict)
    # Objects of others that are used as they are.
    used: frozenset[tuple[Resource, str]] = frozenset()

    @property
    def invalid(self) -> Rejection | None:
        """Return the first rejection that no retry can change, if any."""
        return next(
            (r for r in self.rejections.values() if r.cause is RejectionCause.INVALID), None
        )


class _Success(enum.Enum):
    """Why a child exists."""

    CREATED = enum.auto()
    # By an earlier request, or by the previous operator.
    ALREADY_CREATED = enum.auto()
    # An object of somebody else takes its place.
    USED_AS_IS = enum.auto()


_CAUSE_TEXTS: Final[Mapping[RejectionCause, str]] = {
    RejectionCause.FORBIDDEN: "forbidden",
    RejectionCause.DENIED: "rejected",
    RejectionCause.NOT_SERVED: "not served by the API server, its CRD may be missing",
    RejectionCause.INVALID: "invalid",
}


@attrs.frozen
class Creator:
    """Creates the children of jobs and records the writes that the stores do not show yet."""

    writer: ObjectWriter

    async def create(
        self,
        owner: UID,
        children: Iterable[Child],
        rejected: Mapping[str, Rejection],
        is_current: Callable[[], bool],
    ) -> CreateResult:
        """Create in stages; stop at the first rejection, or once it is not current.

        ``rejected`` has the children that the last attempt could not create, by name. One of them
        is tried alone first, so that another rejection costs one request.

        :raises NamespaceTerminatingError: if the job is about to be deleted, too.
        :raises RequestError: if a retry may help.
        """
        names: dict[Resource, list[str]] = {}
        rejections: dict[str, Rejection] = {}
        failures: list[RequestError] = []
        used: set[tuple[Resource, str]] = set()

        async def create(child: Child) -> None:
            if rejections or failures or not is_current():
                return
            try:
                answer = await self._create_one(owner, child)
            except RequestError as error:
                # The others are on their way: cancelled, a slow one would not succeed in any retry.
                failures.append(error)
                return
            if isinstance(answer, Rejection):
                rejections[child.key.name] = answer
            elif answer is _Success.CREATED:
                names.setdefault(child.resource, []).append(child.key.name)
            elif answer is _Success.USED_AS_IS:
                used.add((child.resource, child.key.name))

        for stage in creation_stages(children, rejected):
            await map_all(create, stage, limit=MAX_PARALLEL)
            if failures:
                raise failures[0]
        return CreateResult(names, rejections, frozenset(used))

    async def _create_one(self, owner: UID, child: Child) -> _Success | Rejection:
        resource = child.resource
        try:
            await self.writer.create(owner, resource, child.key, partial(_render, child))
        except (ContentError, InvalidJobError) as error:
            message = f"{_title(child)} cannot be rendered: {error}"
            return Rejection(
                RejectionCause.INVALID,
                resource,
                message[:MAX_MESSAGE_CHARS],
                message[:MAX_MESSAGE_CHARS],
                error,
            )
        except AlreadyExistsError as error:
            return await self._existing(owner, child, str(error))
        except ApiError as error:
            if (rejection := rejection_of(resource, child.key.name, error)) is None:
                raise
            return rejection
        return _Success.CREATED

    async def _existing(self, owner: UID, child: Child, error: str) -> _Success | Rejection:
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
            await label_child(self.writer, owner, child.resource, existing)
            return _Success.ALREADY_CREATED
        if child.may_exist and controller is None and not existing.metadata.is_terminating:
            return _Success.USED_AS_IS
        holder = f"{controller.kind} {controller.name}" if controller else "no controller"
        message = f"the name of {_title(child)} is taken: the existing object belongs to {holder}"
        return Rejection(cause, child.resource, message, error)


def rejection_of(resource: Resource, name: str, error: ApiError) -> Rejection | None:
    """Return the rejection of a child by a server error; None if the error is not about the child.

    The caller raises other errors.
    """
    if (cause := _cause(error)) is None:
        return None
    if cause is RejectionCause.NOT_SERVED and f'"{name}" not found' in str(error):
        # The kind is served, so only the object itself is gone, which the store is about to show.
        return None
    text = str(error)[:MAX_MESSAGE_CHARS]
    message = f"{resource.kind.lower()} {name} is {_CAUSE_TEXTS[cause]}: {text}"
    return Rejection(cause, resource, message, text)


def _cause(error: ApiError) -> RejectionCause | None:
    """Return why a child was rejected; None for an error that is not about the child."""
    text = str(error)
    if isinstance(error, NamespaceTerminatingError | ThrottledError):
        return None
    if isinstance(error, ForbiddenError):
        return RejectionCause.FORBIDDEN
    if any(words in text for words in _ADMISSION_ERRORS):
        return RejectionCause.DENIED
    if isinstance(error, NotFoundError):
        return RejectionCause.NOT_SERVED
    if isinstance(error, InvalidError):
        return RejectionCause.INVALID
    if error.code >= 500:
        # A message of etcd, which the server passes on.
        return RejectionCause.DENIED if "request is too large" in text else None
    return None if error.code in _UNRELATED_CODES else RejectionCause.DENIED


def _render(child: Child) -> ReadOnlyJSON:
    with wrap_content_errors("rendering"):
        return child.body()


def _title(child: Child) -> str:
    return f"{child.resource.kind.lower()} {child.key.name}"


def creation_stages(
    children: Iterable[Child], rejected: Mapping[str, Rejection]
) -> Iterator[list[Child]]:
    """Yield what pods need, their services, a pod of each template, the others, and Jobs.

    Bindings come after the roles that they refer to.

    Before the services and before the pods comes one that was rejected before, alone. Single ones
    expose a broken template or an exceeded quota at the first request, not at the thousandth; a few
    pods are created together.
    """
    children = list(children)
    few = sum(child.resource == PODS for child in children) <= _FEW_PODS
    retried: dict[Resource, Child] = {}
    first: dict[str, Child] = {}
    by_stage: dict[int, list[Child]] = {}
    for child in children:
        if _was_rejected(child, rejected):
            retried.setdefault(child.resource, child)
        if child.resource == SERVICES:
            stage = 1 if child is retried.get(SERVICES) else 2
        elif child.resource == PODS:
            is_first = child is first.setdefault(child.template, child) and not few
            stage = 3 if child is retried.get(PODS) else 4 if is_first else 5
        else:
            # The pods of Jobs connect to the others.
            stage = {ROLE_BINDINGS: 0, BATCH_JOBS: 6}.get(child.resource, -1)
        by_stage.setdefault(stage, []).append(child)
    for _, stage_children in sorted(by_stage.items()):
        yield stage_children


def _was_rejected(child: Child, rejected: Mapping[str, Rejection]) -> bool:
    # A replica's pod and service have one name.
    rejection = rejected.get(child.key.name)
    return rejection is not None and rejection.resource == child.resource
