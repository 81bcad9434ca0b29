"""A served kind of jobs: its resource, and a dialect for each version."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.defaults import JobDefaults
from dlctl.api.job import Job
from dlctl.api.meta import BATCH_JOBS, Resource
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.pod_groups import pod_group_resource
from dlctl.api.objects.undecoded_object import TOO_DEEP, TOO_DEEP_TEXT
from dlctl.dialects.annotations import annotation_warnings
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.dialects.failure_policy.effects import with_failure_policy
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.service_annotation import shares_service
from dlctl.errors import InvalidJobError

Dialects = Mapping[str, Dialect]


@attrs.frozen
class VersionChoice:
    """The version that an object is meant in."""

    # If empty, that of the first dialect whose shape the spec has.
    version: str = ""
    # Why it is unknown, and the fix; empty if it is known.
    problem: str = ""


BY_SHAPE: Final = VersionChoice()


@attrs.frozen
class Kind:
    """One custom resource: its names, and its dialect by version.

    All versions of a kind are read by the shape of the spec, since the API server stores one
    version and converts only the apiVersion; ``choose_version`` decides where two have one shape.
    """

    resource: Resource
    dialects: Dialects
    defaults: JobDefaults = attrs.field(factory=JobDefaults)
    # How the workers of running jobs are changed; None if they never are.
    elastic: ElasticDialect | None = None
    # The ``framework`` label of training-operator's metrics; empty if they do not count the kind.
    metric_label: str = ""
    choose_version: Callable[[JobObject, Any], VersionChoice] | None = None
    # How its jobs are decoded, with all that ``choose_version`` reads.
    object_type: type[JobObject] = JobObject

    @property
    def scalers(self) -> tuple[Resource, ...]:
        """Return the kinds by which users scale jobs of this kind."""
        return self.elastic.scaler_resources if self.elastic else ()

    @property
    def dependent_resources(self) -> frozenset[Resource]:
        """Return the resources of dependents that jobs of this kind may have."""
        pod_group = pod_group_resource(self.defaults.gang_scheduler_name)
        of_frameworks = (
            resource
            for dialect in self.dialects.values()
            for resource in dialect.framework.dependent_resources
        )
        return frozenset((*of_frameworks, pod_group) if pod_group else of_frameworks)

    @property
    def transient_resources(self) -> frozenset[Resource]:
        """Return those whose objects are deleted when a run of their job ends."""
        return self.dependent_resources.difference(
            *(dialect.framework.retained_resources for dialect in self.dialects.values())
        )

    @property
    def adopted_resources(self) -> frozenset[Resource]:
        """Return those whose objects are adopted after a takeover, as pods and services are."""
        launcher_jobs = [BATCH_JOBS] if self.creates_launcher_jobs else []
        return self.transient_resources.union(launcher_jobs)

    @property
    def creates_secrets(self) -> bool:
        """Return whether the controller creates secrets for jobs of this kind."""
        return any(dialect.framework.creates_secrets for dialect in self.dialects.values())

    @property
    def creates_launcher_jobs(self) -> bool:
        """Return whether launchers of this kind are pods of batch/v1 Jobs."""
        return any(dialect.framework.creates_launcher_jobs for dialect in self.dialects.values())

    @property
    def delegated_rules(self) -> frozenset[tuple[str, str, str]]:
        """Return the rules of the roles of these jobs' pods: group, resource and verb of each."""
        return frozenset(
            rule for dialect in self.dialects.values() for rule in dialect.framework.delegated_rules
        )

    @property
    def singular(self) -> str:
        return self.resource.kind.lower()

    def decode(self, obj: JobObject) -> DecodedObject:
        """Decode the spec of a job and choose its dialect, by default the stored version's."""
        spec, reason = None, ""
        try:
            spec = msgspec.json.decode(obj.readable_spec)
        except msgspec.DecodeError as error:
            reason = f"cannot be read: {error}"
        if obj.spec is TOO_DEEP:
            reason = f"is {TOO_DEEP_TEXT}: give a spec of its fields only"
        choice = self.choose_version(obj, spec) if self.choose_version else BY_SHAPE
        served = list(self.dialects.items())
        version = choice.version or next((v for v, d in served if d.matches(spec)), served[0][0])
        return DecodedObject(
            obj.metadata,
            dialect=self.dialects[version],
            version_problem=choice.problem,
            chosen_version=version if self.choose_version and not choice.problem else "",
            # Owner references have the version that the job's form belongs to.
            resource=attrs.evolve(self.resource, version=version),
            spec=spec,
            status=obj.status,
            invalid_reason=reason,
        )

    def read(self, obj: DecodedObject) -> Job:
        """Read a job of this kind.

        :raises InvalidJobError: naming the field and the fix.
        """
        if obj.invalid_reason:
            raise InvalidJobError(obj.invalid_reason, field="spec")
        job = with_failure_policy(obj.dialect.read(obj))
        if job.total_replicas > MAX_REPLICAS:
            message = (
                f"asks for {job.total_replicas} replicas, but a job may have {MAX_REPLICAS}: "
                "lower them"
            )
            raise InvalidJobError(message, field="spec")
        annotations = obj.metadata.annotations or {}
        return attrs.evolve(
            job,
            defaults=self.defaults,
            annotations=annotations,
            warnings=(*job.warnings, *annotation_warnings(annotations)),
            ranked_types=tuple(obj.dialect.framework(job).ranked_types()),
            shares_service=shares_service(job, obj.dialect, annotations),
        )


def make_kind(group: str, job_type: str, dialects: Dialects, **fields: Any) -> Kind:
    """Return the kind of a job type, stored in the first version."""
    storage_version = next(iter(dialects))
    resource = Resource(group, storage_version, f"{job_type.lower()}s", job_type)
    return Kind(resource, dialects, **fields)
