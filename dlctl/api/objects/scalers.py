"""ScaleIns and ScaleOuts: requests to change the workers of an elastic job."""

import datetime
import enum

import attrs

from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.objects.undecoded_object import UndecodedObject
from dlctl.api.status.conditions import Condition


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


class ScalerObject(UndecodedObject, frozen=True, gc=False):
    """A ScaleIn or ScaleOut as stored on the server, with spec and status undecoded."""

    kind: str = ""
