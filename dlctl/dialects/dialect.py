"""What a dialect must say of one API group's jobs: how they are read, written and labelled."""

import abc
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from dlctl.api.condition_messages import ConditionMessages
from dlctl.api.job import Job, Replica, RunPolicy
from dlctl.api.meta import Object, Resource
from dlctl.api.status import JobStatus
from dlctl.frameworks.dljob import DLJob

JSON = Mapping[str, Any]


class DecodedObject(Object, frozen=True, gc=False, kw_only=True):
    """The object of a job with its spec decoded, and the dialect that the spec is written in."""

    dialect: "Dialect"
    # The job's resource, at the version of that dialect.
    resource: Resource
    # JSON values. Null if the text cannot be decoded; without what nests too deeply.
    spec: Any
    status: msgspec.Raw
    # Why the spec is invalid in every dialect; empty if it is not.
    invalid_reason: str = ""


class Dialect(abc.ABC):
    """One spelling of jobs. All methods are pure; a dialect holds no job's state."""

    framework: type[DLJob]
    # Whether each replica has a service of its own, or the chief alone.
    service_per_replica: bool = True
    # The types of replicas that nobody dials: those have no services.
    types_without_service: Collection[str] = ()
    # Whether the names of replicas resolve before they are ready.
    publish_not_ready_addresses: bool = True
    # Whether the framework's environment is added to what the user has set, or makes way for it.
    overrides_user_env: bool = False
    # Whether the user's spec is completed: with the runtime id, and nothing else.
    patches_spec: bool = False
    # Whether there is no job without a spec. One that was there before there was a rule would not
    # even have its status written.
    requires_spec: bool = True
    # Whether a job may ask to be deleted some time after its end.
    supports_ttl: bool = False
    # Added to what the framework says.
    extra_env: Mapping[str, str] = {}

    @property
    def printer_columns(self) -> Sequence[tuple[str, str, str, int]]:
        """Return what ``kubectl get`` shows: name, path, type, and 1 for ``-o wide`` alone."""
        return (
            ("Phase", ".status.phase", "string", 0),
            ("State", ".status.state", "string", 0),
            ("Age", ".metadata.creationTimestamp", "date", 0),
            ("Reason", ".status.reason", "string", 1),
        )

    @property
    def has_services(self) -> bool:
        """Tell whether replicas are dialled by name at all."""
        return True

    @abc.abstractmethod
    def matches(self, spec: Any) -> bool:
        """Tell by its shape whether a spec is written in this dialect."""

    @abc.abstractmethod
    def read(self, obj: DecodedObject) -> Job:
        """Read a job, with defaults filled in.

        :raises InvalidJobError: naming the field and the fix.
        """

    def run_policy(self, obj: DecodedObject) -> RunPolicy:
        """Read when a job runs, and what becomes of it afterwards; the rest may be unreadable.

        :raises InvalidJobError: naming the field and the fix.
        """
        return RunPolicy()

    def messages(self, job: Job) -> ConditionMessages:
        """Return how a job's state is stated."""
        return ConditionMessages(job.resource.kind, job.key)

    @abc.abstractmethod
    def read_status(self, obj: DecodedObject) -> JobStatus:
        """Read the status that was last written; what is not there is as of a new job.

        It must not fail: the status of an invalid job is read too.
        """

    @abc.abstractmethod
    def write_status(self, status: JobStatus) -> JSON:
        """Return the wire form of a status, complete."""

    @abc.abstractmethod
    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        """Return the labels of a replica's children; the same ones select its pod."""

    def pod_labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        """Return the labels that a replica's pod has beside those that select it."""
        return {}

    def managed_by_external_controller(self, obj: DecodedObject) -> bool:
        """Tell whether another controller looks after a job: nothing of it may be touched.

        It must not fail: an invalid job of another controller's is not ours to refuse.
        """
        return False

    @property
    def orphan_selector(self) -> str:
        """Return a label selector of pods and services that another operator may have made.

        It is the same for all jobs, whose UID tells them apart. None are looked for if it is empty.
        """
        return ""

    @abc.abstractmethod
    def spec_schema(self) -> JSON:
        """Return the structural schema of ``spec`` for the CRD."""

    @abc.abstractmethod
    def status_schema(self) -> JSON:
        """Return the structural schema of ``status``; it must take those of all versions."""

    @property
    def scale_subresource(self) -> JSON | None:
        """Return where ``kubectl scale`` finds numbers and selector, if jobs are scaled."""
        return None

    @property
    def validation_rules(self) -> Sequence[JSON]:
        """Return rules in CEL for the whole job. A status is a change of it too."""
        return ()
