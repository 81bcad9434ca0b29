"""The API of one of Kubeflow's kinds; :mod:`.kinds` has a value for each.

:class:`.KubeflowJob` says what a framework does with its replicas.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import Job, ReplicaSpec
from dlctl.api.objects.jobs import JobObject
from dlctl.dialects.dialect import Dialect
from dlctl.dialects.field_reader import FieldReader
from dlctl.dialects.kind import VersionChoice
from dlctl.dialects.kubeflow.kind_schema import KindSchema
from dlctl.dialects.kubeflow.messages import KindMessages, KubeflowMessages
from dlctl.dialects.kubeflow.replica_rules import ReplicaRules
from dlctl.frameworks.kubeflow.job import KubeflowJob

Check = Callable[[FieldReader, Sequence[ReplicaSpec]], None]
GROUP: Final = "kubeflow.org"
LABEL_PREFIX: Final = "training.kubeflow.org"
TRAINING_OPERATOR: Final = "kubeflow.org/training-operator"
# Its jobs run in another cluster.
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"


def _no_check(fields: FieldReader, specs: Sequence[ReplicaSpec]) -> None:
    return None


# There is one value per kind, compared by identity.
@attrs.frozen(kw_only=True, eq=False)
class KubeflowKind:
    """The names, versions, replicas, schema and messages of one kind."""

    framework: type[KubeflowJob]
    # The prefix of the replica specs field: ``tf`` in ``tfReplicaSpecs``.
    field_prefix: str
    # The name of the port on which replicas connect.
    port_name: str
    # The ``framework`` label of training-operator's metrics; empty if it never had the kind.
    metric_label: str
    group: str = GROUP
    # The controller's name in events.
    controller_name: str = attrs.field()
    # Begins the labels of the job's children, by which clients find them.
    label_prefix: str = f"{LABEL_PREFIX}/"
    # The label, and its value, of the children of all jobs.
    operator_label: tuple[str, str] = attrs.field()
    # Older versions that are also served, in the same form as v1.
    older_versions: Sequence[str] = ()
    # Other forms of the kind by version, made for it; v1 has their fields, so that it stores them.
    other_forms: Mapping[str, Callable[["KubeflowKind"], Dialect]] = attrs.field(factory=dict)
    # Decides which version a job is meant in, where two have one shape, from ``object_type``.
    choose_version: Callable[[JobObject, Any], VersionChoice] | None = None
    object_type: type[JobObject] = JobObject
    # Returns the list form of v1alpha1, if the kind had one.
    list_form: Callable[["KubeflowKind"], Dialect] | None = None
    # True if replicas connect by name; otherwise there are neither services nor a port.
    has_services: bool = True
    # True if a container must have the framework's name or one of its former names.
    requires_container_name: bool = True
    container_aliases: Sequence[str] = ()
    # True if its operator's definition accepted any field, in all versions.
    ignores_unknown_fields: bool = False
    # True if pods get the finalizers of their template, which somebody has to remove.
    copies_finalizers: bool = True
    # Pod annotations that were fields of the replica spec, by field.
    annotation_by_field: Mapping[str, str] = attrs.field(factory=dict)
    # True if ``kubectl scale`` sets the number of workers.
    is_scalable: bool = False
    # The values of ``runPolicy.managedBy`` that mean this controller: those it replaces.
    controllers: Sequence[str] = (TRAINING_OPERATOR,)
    # True if it may name any other controller, and not only MultiKueue's.
    has_other_controllers: bool = False
    replicas: ReplicaRules = attrs.field(factory=ReplicaRules)
    schema: KindSchema = attrs.field(factory=KindSchema)
    # Checks on reading what the schema's rules check: a job may come from a server without them.
    check: Check = _no_check
    messages: KindMessages = attrs.field(factory=KindMessages)

    @controller_name.default
    def _training_operators_name(self) -> str:
        return f"{self.name.lower()}-controller"

    @operator_label.default
    def _training_operators_label(self) -> tuple[str, str]:
        return f"{self.label_prefix}operator-name", self.controller_name

    @property
    def name(self) -> str:
        return self.framework.job_type

    @property
    def replica_types(self) -> Sequence[str]:
        return self.framework.replica_types

    @property
    def replica_specs_field(self) -> str:
        return f"{self.field_prefix}ReplicaSpecs"

    @property
    def types_by_name(self) -> Mapping[str, str]:
        """Return the replica types by their present and former names, in lower case."""
        return {type_: type_ for type_ in self.replica_types} | dict(self.replicas.type_aliases)

    @property
    def keeps_unknown_fields(self) -> bool:
        """Return whether v1 has to store fields that only another form knows."""
        return self.list_form is not None and self.schema.list_properties is None

    @property
    def container_names(self) -> Sequence[str]:
        """Return the names of the training container, the current one first."""
        return [self.framework.container_name(), *self.container_aliases]

    def type_name(self, replica_type: str) -> str:
        """Return a replica type as users write it: ``Worker``."""
        return self.replicas.type_names.get(replica_type, replica_type.capitalize())

    def label(self, name: str) -> str:
        """Return the full name of a label of a job's children."""
        return f"{self.label_prefix}{name}"

    def type_labels(self, job: str, replica_type: str) -> dict[str, str]:
        """Return the labels that the children of all replicas of a type share."""
        label, value = self.operator_label
        return {
            self.label("job-name"): job,
            label: value,
            self.label("replica-type"): replica_type,
        }

    def condition_messages(self, job: Job) -> KubeflowMessages:
        """Return the messages of a job of this kind."""
        return KubeflowMessages(
            job.resource.kind,
            job.key,
            event_source=self.controller_name,
            type_name=self.type_name,
            of_kind=self.messages,
            namespaced=self.messages.namespaced(job),
            exit_code_types=frozenset(
                spec.type for spec in job.replica_specs if spec.retry_policy.goes_by_exit_code
            ),
            has_zero_backoff_limit=job.run_policy.backoff_limit == 0 and not job.has_failure_policy,
            emits_exit_codes=self.messages.emits_exit_codes,
            uncounted_after_finish=self.messages.uncounted_after_finish,
            name_conflict_reason=self.messages.name_conflict_reason,
            other_scheduler_reason=self.messages.other_scheduler_reason,
        )
