"""The interface of dialects of elastic jobs: their conditions, and the requests that scale them.

Its parts are modules of pure functions.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import attrs

from dlctl.api.job import Job
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import Resource
from dlctl.api.objects.scalers import ScaleFailure, Scaler, ScalerObject, ScalerStatus
from dlctl.api.status.conditions import Condition


class ScalerCodec(Protocol):
    """Reads scalers, and writes their statuses."""

    def read(self, obj: ScalerObject, resource: Resource) -> Scaler:
        """Read a scaler; an invalid one has an ``invalid_reason``."""

    def without_spec(
        self, obj: ScalerObject, resource: Resource, invalid_reason: str = ""
    ) -> Scaler:
        """Return a scaler of which only the metadata and the status are known."""

    def write_status(self, status: ScalerStatus, resource: Resource) -> ReadOnlyJSON:
        """Return the wire form of a status, complete."""


class ElasticConditions(Protocol):
    """The conditions of elastic jobs and of scalers.

    ``scaler`` is a scaler's full name; it is empty if the job's spec or a node drain causes the
    operation.
    """

    def workers_created(self, job: Job, now: datetime.datetime) -> Condition: ...

    def workers_ready(self, job: Job, count: int, now: datetime.datetime) -> Condition: ...

    def launcher_created(self, job: Job, now: datetime.datetime) -> Condition: ...

    def scaling(self, job: Job, scaler: str, now: datetime.datetime) -> Condition: ...

    def scaling_finished(
        self, job: Job, scaler: str, now: datetime.datetime, failure: ScaleFailure | None
    ) -> Condition: ...

    def workers_created_at(self, current: Sequence[Condition]) -> datetime.datetime | None:
        """Return since when a job's workers exist; None if they do not."""

    def scaler_created(self, scaler: Scaler, now: datetime.datetime) -> Condition: ...

    def scaler_scaling(self, scaler: Scaler, now: datetime.datetime) -> Condition: ...

    def script_executed(self, scaler: Scaler, now: datetime.datetime) -> Condition: ...

    def scaler_finished(
        self, scaler: Scaler, now: datetime.datetime, failure: ScaleFailure | None
    ) -> Condition: ...

    def has_executed_script(self, scaler: Scaler) -> bool:
        """Return whether a scaler's script has succeeded, or without one the hosts are written."""


class ElasticFramework(Protocol):
    """A framework whose launcher reads the names of its workers from files."""

    @property
    def slots(self) -> int:
        """Return the number of processes per worker."""

    def host_files(self) -> Mapping[str, str]:
        """Return the files, by path."""


@attrs.frozen(kw_only=True)
class ElasticDialect:
    """How jobs of a kind report that their workers change, and how users ask for it."""

    framework: Callable[[Job], ElasticFramework]
    # The kinds by which users scale jobs.
    scaler_resources: tuple[Resource, ...]
    scalers: ScalerCodec
    conditions: ElasticConditions
    # Returns the CustomResourceDefinition of a kind of scalers.
    scaler_crd: Callable[[Resource], ReadOnlyJSON]
