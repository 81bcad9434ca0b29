"""Creating children: few at first, then in parallel, and each under its name only once.

A name is the guard against duplicates: a create whose answer was lost is found to have been done
when it is tried again. I/O only; what to create is decided elsewhere.
"""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.meta import PODS, UID, Object, ObjectKey, Resource
from dlctl.controller.expectations import Expectations
from dlctl.errors import InvalidJobError
from dlctl.kube.client import Client
from dlctl.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ForbiddenError,
    InvalidError,
    NamespaceTerminatingError,
    NotFoundError,
    ThrottledError,
)
from dlctl.reconcilers.children.adoption import label_child
from dlctl.reconcilers.content_errors import ContentError, wrap_content_errors
from dlctl.tasks import map_all

JSON = Mapping[str, Any]
# A broken template or a full quota is found out by the first request and not by the thousandth.
SLOW_START_INITIAL_BATCH: Final = 1
# More would start too much in one turn of the event loop; requests take longer than this does.
MAX_PARALLEL: Final = 16
# Who refuses with these words is the administrator's, and may take the same child later; what code
# and reason come with them is up to each webhook.
_ADMISSION_ERRORS: Final = ('admission webhook "', "failed calling webhook", "AdmissionPolicy")
# Credentials, time, a version, too many requests: not about the child.
_UNRELATED_CODES: Final = frozenset({401, 408, 409, 410, 429})
# Of a message of the server, which may quote what a tenant wrote.
MAX_MESSAGE_CHARS: Final = 1024


@attrs.frozen
class Child:
    """One object to create for a job."""

    resource: Resource
    key: ObjectKey
    # Rendered when its turn comes: each of N pods may hold N addresses.
    body: Callable[[], JSON]


class RejectionCause(enum.Enum):
    """Why a child was not created."""

    # Another object has its name.
    ALREADY_EXISTS = enum.auto()
    # Quota or authorization says no, for now.
    FORBIDDEN = enum.auto()
    # Admission, or a server that cannot read the child.
    DENIED = enum.auto()
    # The server does not serve the resource, or no longer does.
    NOT_SERVED = enum.auto()
    # The same child will never be accepted, or cannot even be rendered.
    INVALID = enum.auto()


@attrs.frozen
class Rejection:
    """One child that was not created: why, and the server's own message."""

    cause: RejectionCause
    resource: Resource
    message: str
    server_message: str
    # Set if the child could not even be rendered.
    exception: ContentError | InvalidJobError | None = None


@attrs.frozen
class CreateResult:
    """The result of a batch: the names of created children by resource, and refusals by name."""

    names: Mapping[Resource, list[str]] = attrs.field(factory=dict)
    rejections: Mapping[str, Rejection] = attrs.field(factory=dict)

    @property
    def invalid(self) -> Rejection | None:
        """Return the first refusal that no retry can change, if there is one."""
        return next(
            (r for r in self.rejections.values() if r.cause is RejectionCause.INVALID), None
        )


# The answer for a child that an earlier request has created.
ALREADY_CREATED: Final = Rejection(RejectionCause.ALREADY_EXISTS, PODS, "", "")
_CAUSE_TEXTS: Final[Mapping[RejectionCause, str]] = {
    RejectionCause.FORBIDDEN: "not allowed",
    RejectionCause.DENIED: "refused",
    RejectionCause.NOT_SERVED: "of a kind that is not served, so its definition may be missing",
    RejectionCause.INVALID: "invalid",
}


@attrs.frozen
class Creator:
    """Creates the children of jobs and remembers which versions the stores have yet to show."""

    client: Client
    expectations: Expectations

    async def create(self, owner: UID, children: Iterable[Child]) -> CreateResult:
        """Create in batches of doubling size; after a batch with a refusal, no further one.

        :raises NamespaceTerminatingError: if the job is about to go, too.
        :raises ApiError, UnreachableError: if trying again may help.
        """
        names: dict[Resource, list[str]] = {}
        rejections: dict[str, Rejection] = {}
        for batch in _slow_start_batches(list(children)):
            answers = await map_all(
                lambda child: self._create_one(owner, child), batch, limit=MAX_PARALLEL
            )
            for child, answer in zip(batch, answers, strict=True):
                if answer is None:
                    names.setdefault(child.resource, []).append(child.key.name)
                elif answer is not ALREADY_CREATED:
                    rejections[child.key.name] = answer
            if rejections:
                break
        return CreateResult(names, rejections)

    async def _create_one(self, owner: UID, child: Child) -> Rejection | None:
        """Return None if the child was created, THERE if it exists, else why it was refused."""
        resource = child.resource
        try:
            with wrap_content_errors("rendering"):
                body = child.body()
            created = await self.client.create(resource, child.key.namespace, body, Object)
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
            message = await self._check_owner(owner, child)
            return (
                Rejection(RejectionCause.ALREADY_EXISTS, resource, message, str(error))
                if message
                else ALREADY_CREATED
            )
        except ApiError as error:
            if (rejection := rejection_of(resource, child.key.name, error)) is None:
                raise
            return rejection
        self.expectations.expect_write(owner, resource, created.metadata.resource_version)
        return None

    async def _check_owner(self, owner: UID, child: Child) -> str:
        """Return why a child cannot be made whose name is taken, or "" if it is the owner's."""
        try:
            existing = await self.client.get(child.resource, child.key, Object)
        except NotFoundError:
            return f"{_title(child)} is just being removed"
        controller = existing.metadata.controller
        if controller and controller.uid == owner:
            # An earlier try of ours that the store has not shown yet; or the work of the operator
            # that was here before, which no store of ours will show without our label.
            existing = await label_child(self.client, child.resource, existing)
            self.expectations.expect_write(
                owner, child.resource, existing.metadata.resource_version
            )
            return ""
        holder = f"{controller.kind} {controller.name}" if controller else "nobody's controller"
        return f"the name of {_title(child)} is taken: the one there belongs to {holder}"


def rejection_of(resource: Resource, name: str, error: ApiError) -> Rejection | None:
    """Return what a server's error about a child means for it; None if it is not about the child.

    What is not about the child is the caller's to raise.
    """
    if (cause := _cause(error)) is None:
        return None
    if cause is RejectionCause.NOT_SERVED and f'"{name}" not found' in str(error):
        # Its kind is served: the child alone has gone, which the store is about to show.
        return None
    text = str(error)[:MAX_MESSAGE_CHARS]
    message = f"{resource.kind.lower()} {name} is {_CAUSE_TEXTS[cause]}: {text}"
    return Rejection(cause, resource, message, text)


def _cause(error: ApiError) -> RejectionCause | None:
    """Return why a child was refused; None for an error that is not about the child."""
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
        # The words of etcd, which the server passes on.
        return RejectionCause.DENIED if "request is too large" in text else None
    return None if error.code in _UNRELATED_CODES else RejectionCause.DENIED


def _title(child: Child) -> str:
    return f"{child.resource.kind.lower()} {child.key.name}"


def _slow_start_batches(children: list[Child]) -> Iterator[list[Child]]:
    start, size = 0, SLOW_START_INITIAL_BATCH
    while start < len(children):
        yield children[start : start + size]
        start += size
        size *= 2
