"""The kinds dlctl serves: each is a framework, and the dialects its API group spells it in.

One table; a framework of another package gets dl-operator's group and form without a line here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs
import msgspec

from dlctl.api.defaults import JobDefaults
from dlctl.api.elastic import GROUP, SCALE_INS, SCALE_OUTS
from dlctl.api.gangs import pod_group_resource
from dlctl.api.job import Job, JobObject
from dlctl.api.meta import Resource
from dlctl.api.nesting import MAX_DEPTH
from dlctl.api.status import JobStatus
from dlctl.api.undecoded_object import TOO_DEEP
from dlctl.dialects.dialect import Dialect
from dlctl.dialects.et_operator.training_job import TrainingJobDialect
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.kubeflow.replica_map import ReplicaMap
from dlctl.dialects.replica_lists.bare_list import BareList
from dlctl.dialects.replica_lists.replica_list import (
    fioravanzo_v1alpha1,
    kubeflow_v1alpha1,
    tf_operator_v1alpha1,
)
from dlctl.errors import ConfigError, InvalidJobError
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.horovod.job import TrainingJob
from dlctl.frameworks.kubeflow.catalogue import KUBEFLOW_JOBS
from dlctl.frameworks.kubeflow.job import KubeflowJob
from dlctl.frameworks.mxnet import MXJob
from dlctl.frameworks.tensorflow import LegacyTFJob

Dialects = Mapping[str, Dialect]
_KUBEFLOW_GROUP: Final = "kubeflow.org"
_FRAMEWORK_GROUP: Final = "mpba.fbk.eu"


@attrs.frozen
class Kind:
    """One custom resource: what it is called, and how it is spelt by version.

    All versions of a kind are read by the shape of the spec, since the API server stores one
    version and converts between them by name only.
    """

    resource: Resource
    dialects: Dialects
    defaults: JobDefaults = attrs.field(factory=JobDefaults)
    # Where users ask that jobs of this kind be scaled; a kind of their own each.
    scalers: tuple[Resource, ...] = ()

    @property
    def dependent_resources(self) -> frozenset[Resource]:
        """Return where jobs of this kind have objects beside pods and services."""
        pod_group = pod_group_resource(self.defaults.gang_scheduler_name)
        of_frameworks = (
            resource
            for dialect in self.dialects.values()
            for resource in dialect.framework.dependent_resources
        )
        return frozenset((*of_frameworks, pod_group) if pod_group else of_frameworks)

    @property
    def retained_resources(self) -> frozenset[Resource]:
        """Return those of them whose objects go with the job, and are never deleted before."""
        return frozenset(
            resource
            for dialect in self.dialects.values()
            for resource in dialect.framework.retained_resources
        )

    @property
    def creates_secrets(self) -> bool:
        """Tell whether jobs of this kind get secrets, which the controller makes."""
        return any(dialect.framework.creates_secrets for dialect in self.dialects.values())

    @property
    def delegated_rules(self) -> frozenset[tuple[str, str, str]]:
        """Return the rights that jobs of this kind hand on to their pods."""
        return frozenset(
            grant
            for dialect in self.dialects.values()
            for grant in dialect.framework.delegated_rules
        )

    @property
    def singular(self) -> str:
        return self.resource.kind.lower()

    def dialect_of(self, obj: JobObject) -> Dialect:
        """Return the dialect that a job is written in, else that of the stored version."""
        stored, *others = self.dialects.values()
        # Where there is nothing to choose, the spec need not be decoded; this is asked often.
        if not others:
            return stored
        try:
            spec = msgspec.json.decode(obj.readable_spec)
        except msgspec.DecodeError:
            return stored
        return next((d for d in (stored, *others) if d.matches(spec)), stored)

    def read(self, obj: JobObject) -> Job:
        """Read a job of this kind.

        :raises InvalidJobError: naming the field and the fix.
        """
        if obj.spec is TOO_DEEP:
            message = f"is nested deeper than {MAX_DEPTH} levels: give a spec of its fields only"
            raise InvalidJobError(message, field="spec")
        dialect = self.dialect_of(obj)
        # A job's children name the version that its form belongs to.
        version = next(name for name, one in self.dialects.items() if one is dialect)
        try:
            job = dialect.read(obj, attrs.evolve(self.resource, version=version))
        except msgspec.DecodeError as error:
            raise InvalidJobError(f"cannot be read: {error}", field="spec") from error
        if job.total_replicas > MAX_REPLICAS:
            message = (
                f"asks for {job.total_replicas} replicas, but a job may have {MAX_REPLICAS}: "
                "lower them"
            )
            raise InvalidJobError(message, field="spec")
        annotations = obj.metadata.annotations or {}
        return attrs.evolve(job, defaults=self.defaults, annotations=annotations)

    def read_status(self, obj: JobObject) -> JobStatus:
        return self.dialect_of(obj).read_status(obj)


def served_kinds(
    frameworks: Mapping[str, type[DLJob]], defaults: JobDefaults | None = None
) -> list[Kind]:
    """Return the kinds that are served: Kubeflow's, et-operator's, those of the frameworks by type.

    ``defaults`` are what jobs go by that say nothing themselves.

    :raises ConfigError: if two kinds would be served under one name.
    """
    served = [
        _make_kind(_KUBEFLOW_GROUP, job.job_type, dict(_kubeflow_dialects(job)))
        for job in KUBEFLOW_JOBS
    ]
    elastic = _make_kind(GROUP, TrainingJob.job_type, {"v1alpha1": TrainingJobDialect()})
    served.append(attrs.evolve(elastic, scalers=(SCALE_INS, SCALE_OUTS)))
    if "MXJob" in frameworks:
        served.append(
            _make_kind(
                "fioravanzo.org", "MXJob", {"v1alpha1": fioravanzo_v1alpha1(frameworks["MXJob"])}
            )
        )
    taken = {kind.resource.group_resource for kind in served}
    for framework in frameworks.values():
        kind = _make_kind(_FRAMEWORK_GROUP, framework.job_type, {"v1": _bare_list(framework)})
        if kind.resource.group_resource in taken:
            raise ConfigError(
                f"{framework.__module__}.{framework.__qualname__} would be served as "
                f"{kind.resource.group_resource}, which is taken: choose another job_type"
            )
        taken.add(kind.resource.group_resource)
        served.append(kind)
    return [attrs.evolve(kind, defaults=defaults or JobDefaults()) for kind in served]


def kind_of_api_version(kinds: Iterable[Kind], api_version: str, name: str) -> Kind | None:
    """Return the kind of a manifest's ``apiVersion`` and ``kind``, served at that version."""
    group, _, version = api_version.rpartition("/")
    for kind in kinds:
        resource = kind.resource
        if (resource.group, resource.kind) == (group, name) and version in kind.dialects:
            return attrs.evolve(kind, resource=attrs.evolve(resource, version=version))
    return None


def _kubeflow_dialects(framework: type[KubeflowJob]) -> Iterator[tuple[str, Dialect]]:
    """Yield the versions of one of Kubeflow's kinds; the first one is stored."""
    list_form = _list_dialect(framework)
    map_form = ReplicaMap(framework, has_list_form=list_form is not None)
    yield "v1", map_form
    if list_form is not None:
        yield "v1alpha1", list_form
    # Of one form with the first, and read as such: which of them it was is not stored.
    for version in framework.older_versions:
        yield version, map_form


def _list_dialect(framework: type[KubeflowJob]) -> Dialect | None:
    """Return the list form that a kind had at first, if it had one."""
    if framework.job_type == "TFJob":
        return tf_operator_v1alpha1(LegacyTFJob, framework)
    return kubeflow_v1alpha1(MXJob, framework) if framework.job_type == "MXJob" else None


def _bare_list(framework: type[DLJob]) -> BareList:
    if framework is MXJob:
        # dl-operator's own MXJob meets on another port than the framework's default.
        return BareList(framework, default_port=9000, extra_env={"PS_VERBOSE": "2"})
    return BareList(framework)


def _make_kind(group: str, job_type: str, dialects: Dialects) -> Kind:
    storage_version = next(iter(dialects))
    return Kind(Resource(group, storage_version, f"{job_type.lower()}s", job_type), dialects)
