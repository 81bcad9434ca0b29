"""What a dialect must say of one API group's jobs: how they are read, written and labelled."""

import abc
from collections.abc import Mapping
from typing import Any

from dlctl.api.job import Job, JobObject, Replica
from dlctl.api.meta import Resource
from dlctl.api.status import JobStatus
from dlctl.frameworks.dljob import DLJob

JSON = Mapping[str, Any]


class Dialect(abc.ABC):
    """One spelling of jobs. All methods are pure; a dialect holds no job's state."""

    # Name of the port that services and the framework's container publish.
    port_name: str = "dljob-port"
    # Whether each replica has a service of its own, or the chief alone.
    service_per_replica: bool = True
    # Whether the user's spec is completed: with the runtime id, and nothing else.
    completes_spec: bool = False
    # Whether a job may ask to be deleted some time after its end.
    deletes_jobs: bool = False
    # Added to what the framework says.
    extra_environment: Mapping[str, str] = {}

    @abc.abstractmethod
    def recognises(self, spec: Any) -> bool:
        """Tell by its shape whether a spec is written in this dialect."""

    @abc.abstractmethod
    def read(self, obj: JobObject, resource: Resource, framework: type[DLJob]) -> Job:
        """Read a job, with defaults filled in.

        :raises InvalidJobError: naming the field and the fix.
        """

    @abc.abstractmethod
    def read_status(self, obj: JobObject) -> JobStatus:
        """Read the status that was last written; what is not there is as of a new job.

        It must not fail: the status of an invalid job is read too.
        """

    @abc.abstractmethod
    def write_status(self, status: JobStatus) -> JSON:
        """Return the wire form of a status, complete."""

    @abc.abstractmethod
    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        """Return the labels of a replica's children; the same ones select its pod."""

    @abc.abstractmethod
    def spec_schema(self, framework: type[DLJob]) -> JSON:
        """Return the structural schema of ``spec`` for the CRD."""
