"""The interface of dialects: how jobs of an API group are read, written and labelled."""

import abc
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import Object, Resource
from dlctl.api.policies.run_policy import RunPolicy
from dlctl.api.status.condition_messages import ConditionMessages
from dlctl.api.status.job_status import JobStatus
from dlctl.frameworks.dljob import DLJob


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
    # Why its version is unknown, so that nothing may be created for it; empty if it is known.
    version_problem: str = ""
    # The version to record, for kinds whose version does not show in the spec.
    chosen_version: str = ""


class Dialect(abc.ABC):
    """One representation of jobs. All methods are pure; a dialect holds no job's state."""

    framework: type[DLJob]
    # True if each replica has its own service, False if only the chief has one.
    service_per_replica: bool = True
    # Replica types that no other replica connects to: they have no services.
    types_without_service: Collection[str] = ()
    # True if the replicas of each job share one service, without an annotation that asks for it.
    shares_service: bool = False
    # True if the framework's variables replace the user's, False if the user's take precedence.
    overrides_user_env: bool = False
    # True if a runtime id is written into the user's spec.
    patches_spec: bool = False
    # True if a spec is required. For jobs stored before this rule, not even the status could be
    # written.
    requires_spec: bool = True
    # True if the replicas of a job depend on its status, and not on its spec alone.
    status_affects_replicas: bool = False
    # True if a job may have a TTL.
    supports_ttl: bool = False
    # The field of a spec by which :meth:`matches` recognizes the form, besides the replicas.
    form_field: str = ""
    # The field of a spec that has one spelling, where others may be written in any case.
    exact_field: str = ""
    # Added to the framework's environment.
    extra_env: Mapping[str, str] = {}

    @property
    def replica_labels(self) -> Collection[str]:
        """Return the labels by which a job's replicas differ; empty if none can share a service."""
        return ()

    @property
    def foreign_fields(self) -> Mapping[str, str]:
        """Return the fields of spec that belong to another version, with that version."""
        return {}

    @property
    def printer_columns(self) -> Sequence[tuple[str, str, str, int]]:
        """Return the columns of ``kubectl get``: name, path, type, and 1 for ``-o wide`` only."""
        return (
            ("Phase", ".status.phase", "string", 0),
            ("State", ".status.state", "string", 0),
            ("Age", ".metadata.creationTimestamp", "date", 0),
            ("Reason", ".status.reason", "string", 1),
        )

    @property
    def stores_defaults(self) -> bool:
        """Return whether the server writes defaults that the stored version does not have."""
        return False

    @property
    def ignores_unknown_fields(self) -> bool:
        """Return whether the operator of this version accepted fields that nobody reads."""
        return False

    @property
    def has_services(self) -> bool:
        """Return whether replicas connect to each other by name."""
        return True

    @abc.abstractmethod
    def matches(self, spec: Any) -> bool:
        """Return whether a spec has the shape of this dialect."""

    @abc.abstractmethod
    def read(self, obj: DecodedObject) -> Job:
        """Read a job, with defaults filled in.

        :raises InvalidJobError: naming the field and the fix.
        """

    def run_policy(self, obj: DecodedObject) -> RunPolicy:
        """Read the run policy; the rest of the spec may be invalid.

        :raises InvalidJobError: naming the field and the fix.
        """
        return RunPolicy()

    def suspension_patch(self, obj: DecodedObject, *, suspended: bool) -> ReadOnlyJSON | None:
        """Return the merge patch that suspends or resumes a job; None if none does."""
        return None

    def messages(self, job: Job) -> ConditionMessages:
        """Return the messages by which a job's state is reported."""
        return ConditionMessages(job.resource.kind, job.key)

    @abc.abstractmethod
    def read_status(self, obj: DecodedObject) -> JobStatus:
        """Read the last written status; missing fields are those of a new job.

        It never fails: the status of an invalid job is read too.
        """

    @abc.abstractmethod
    def write_status(self, status: JobStatus) -> ReadOnlyJSON:
        """Return the wire form of a status, complete."""

    @abc.abstractmethod
    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        """Return the labels of a replica's children; the same ones select its pod."""

    def pod_labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        """Return the labels of a replica's pod in addition to those that select it."""
        return {}

    def service_labels(self, job: Job, selector: Mapping[str, str]) -> Mapping[str, str]:
        """Return the labels of a service that selects these pods."""
        return selector

    def publishes_not_ready_addresses(self, job: Job) -> bool:
        """Return whether the names of replicas resolve before the replicas are ready."""
        return True

    def managed_by_external_controller(self, obj: DecodedObject) -> bool:
        """Return whether another controller manages a job, so that none of it may be changed.

        It never fails: an invalid job of another controller is not ours to reject.
        """
        return False

    @property
    def orphan_selector(self) -> str:
        """Return a label selector of pods and services that another operator may have created.

        It is the same for all jobs; owner UIDs distinguish them. If it is empty, there are none.
        """
        return ""

    @abc.abstractmethod
    def spec_schema(self) -> ReadOnlyJSON:
        """Return the structural schema of ``spec`` for the CRD."""

    def manifest_schema(self) -> ReadOnlyJSON:
        """Return the schema of ``spec`` with the fields of old manifests, read or ignored."""
        return self.spec_schema()

    @abc.abstractmethod
    def status_schema(self) -> ReadOnlyJSON:
        """Return the structural schema of ``status``; it must accept those of all versions."""

    @property
    def scale_subresource(self) -> ReadOnlyJSON | None:
        """Return the paths of the scale subresource, if jobs have one."""
        return None

    @property
    def validation_rules(self) -> Sequence[ReadOnlyJSON]:
        """Return CEL rules for the whole job; they are also evaluated on status updates."""
        return ()
