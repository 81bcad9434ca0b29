"""ScaleIns and ScaleOuts: requests to change the workers of an elastic job."""

import datetime
import enum
from typing import Final, Self

import attrs
import msgspec
from msgspec.structs import force_setattr

from dlctl.api.interning import Interner, with_parts
from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.objects.undecoded_object import NULL, UndecodedObject
from dlctl.api.status.conditions import Condition

# The names of 3,000 pods. Stores keep each request until it has been deleted.
MAX_SPEC_BYTES: Final = 64 << 10
# No object has a longer name.
_MAX_NAME_CHARS: Final = 253


class ScalerPhase(enum.StrEnum):
    """Phase of a ScaleIn or ScaleOut, with et-operator's names."""

    NEW = ""
    SCALING = "Scaling"
    SUCCEEDED = "ScaleSucceeded"
    FAILED = "ScaleFailed"

    @property
    def finished(self) -> bool:
        return self in (ScalerPhase.SUCCEEDED, ScalerPhase.FAILED)


class FailedStep(enum.Enum):
    """The step at which scaling failed."""

    SELECT_WORKERS = enum.auto()
    AWAIT_WORKERS = enum.auto()
    RUN_SCRIPT = enum.auto()
    # Any other.
    OTHER = enum.auto()


@attrs.frozen
class ScaleFailure:
    """Why a ScaleIn, a ScaleOut or a change by the spec failed."""

    message: str
    step: FailedStep = FailedStep.OTHER


@attrs.frozen
class Script:
    """A program in the launcher that takes part in scaling; it gets the names of the workers."""

    path: str
    timeout_s: int = 60
    # Pairs of name and value, in order.
    env: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class ScalerStatus:
    """The recorded status of a ScaleIn or ScaleOut."""

    phase: ScalerPhase = ScalerPhase.NEW
    conditions: tuple[Condition, ...] = ()
    # The names of the pods to remove or add, once chosen.
    pods: tuple[str, ...] = ()


@attrs.frozen
class Scaler:
    """A decoded ScaleIn or ScaleOut."""

    resource: Resource
    key: ObjectKey
    uid: UID
    created: datetime.datetime
    is_scale_out: bool
    # The name of its job, in the same namespace.
    job: str
    # How many workers to add or remove; None if ``pods`` are named instead, or neither is given.
    count: int | None = None
    # ScaleIn: names of the pods to remove; None if none are named.
    pods: tuple[str, ...] | None = None
    # ScaleOut: how many of the added workers suffice at the timeout; None: all of them.
    min_count: int | None = None
    # ScaleOut: seconds until all added workers must be ready; None for the controller's setting.
    timeout_s: int | None = None
    script: Script | None = None
    # How often a failed step is retried.
    backoff_limit: int = 0
    # Why the spec is invalid: the scaler fails with this message, and no worker is touched.
    invalid_reason: str = ""
    status: ScalerStatus = ScalerStatus()

    @property
    def succeeded(self) -> bool:
        return self.status.phase is ScalerPhase.SUCCEEDED

    @property
    def full_name(self) -> str:
        """Return the scaler's name in a job's status: ``ScaleIn:namespace/name``."""
        return f"{self.resource.kind}:{self.key}"


class _Selector(msgspec.Struct, frozen=True):
    name: str | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    selector: _Selector | None = None
    to_delete: msgspec.Raw = msgspec.Raw()
    env: msgspec.Raw = msgspec.Raw()


class LargeSpec(msgspec.Struct, frozen=True, gc=False):
    """What is known of a spec that has more than :data:`MAX_SPEC_BYTES`."""

    size: int = 0
    job: str = ""
    has_long_names: bool = False
    # Why the name of the job is unknown, if it is.
    error: str = ""

    @classmethod
    def of(cls, spec: msgspec.Raw) -> Self:
        size = memoryview(spec).nbytes
        try:
            found = msgspec.json.decode(spec, type=_Spec)
        except msgspec.DecodeError as error:
            return cls(size, error=str(error))
        has_long_names = memoryview(found.to_delete).nbytes > memoryview(found.env).nbytes
        job = (found.selector.name if found.selector else None) or ""
        return cls(size, job if len(job) <= _MAX_NAME_CHARS else "", has_long_names)


class ScalerObject(UndecodedObject, frozen=True, gc=False):
    """A ScaleIn or ScaleOut as stored on the server, with spec and status undecoded."""

    kind: str = ""
    # Takes the place of a spec that stores do not keep.
    omitted_spec: LargeSpec | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # A field of this name on the server is the user's.
        force_setattr(self, "omitted_spec", None)

    @property
    def large_spec(self) -> LargeSpec | None:
        """What is known of the spec if it is too large to be read; None of all others."""
        if self.omitted_spec is None and memoryview(self.spec).nbytes > MAX_SPEC_BYTES:
            return LargeSpec.of(self.spec)
        return self.omitted_spec

    def for_store(self, interner: Interner) -> Self:
        """Return the request without annotations, and without a spec that is too large."""
        metadata = self.metadata.for_store(interner, ())
        if (large := self.large_spec) is None:
            return with_parts(self, metadata=metadata, truncated_spec=NULL)
        return with_parts(
            self, metadata=metadata, spec=NULL, truncated_spec=NULL, omitted_spec=large
        )
