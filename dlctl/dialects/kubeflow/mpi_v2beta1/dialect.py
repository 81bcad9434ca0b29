"""The form of MPIJob v2beta1: v1's map of replica specs, with the names and labels of mpi-operator.

The launcher's limits are those of its batch/v1 Job, so the run policy of the job itself has none:
unless it has a failure policy, which decides instead of the Job.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import WORKER, Job, Replica, ReplicaSpec, SpecWarning
from dlctl.api.json_types import JSON, ReadOnlyJSON
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import RunPolicy
from dlctl.api.policies.scheduling_policy import SchedulingPolicy
from dlctl.api.status import conditions
from dlctl.api.status.condition_messages import ConditionMessages
from dlctl.api.status.job_status import JobStatus
from dlctl.dialects.annotations import TTL_DELETES_JOB_ANNOTATION
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.failure_policy import effects as failure_policy_effects
from dlctl.dialects.field_reader import MAX_INT32, FieldReader
from dlctl.dialects.kubeflow import cel_rules
from dlctl.dialects.kubeflow.kind import LABEL_PREFIX
from dlctl.dialects.kubeflow.mpi_v2beta1.fields import AT_STARTUP, FORM_FIELD, WAIT_FOR_WORKERS
from dlctl.dialects.kubeflow.mpi_v2beta1.messages import MPIJobMessages
from dlctl.dialects.kubeflow.replica_map import ReplicaMap
from dlctl.dialects.status import replica_map_status, status_codec
from dlctl.errors import InvalidJobError, quoted
from dlctl.frameworks.kubeflow.mpi_implementations import MPIImplementation
from dlctl.frameworks.kubeflow.mpi_ssh_pods import DEFAULT_SSH_PATH

OPERATOR: Final = "mpi-operator"
_QUEUE_ANNOTATION: Final = "scheduling.volcano.sh/queue-name"
_EVICTED_REASON: Final = "MPIJobEvicted"
_ROLE_LABEL: Final = f"{LABEL_PREFIX}/job-role"
_INDEX_LABEL: Final = f"{LABEL_PREFIX}/replica-index"
_OPERATOR_LABEL: Final = f"{LABEL_PREFIX}/operator-name"
_TEMPLATE_POLICY_WARNING: Final = SpecWarning(
    "SetPodTemplateRestartPolicy",
    "Restart policy in pod template overridden by restart policy in replica spec",
)


@attrs.frozen
class MPIJobV2beta1(ReplicaMap):
    """Jobs that mpi-operator ran."""

    replica_labels = (_ROLE_LABEL, _INDEX_LABEL)
    shares_service = True
    form_field = FORM_FIELD

    @property
    def has_services(self) -> bool:
        return True

    def matches(self, spec: Any) -> bool:
        # Its shape is v1's: see :mod:`.version_choice`.
        return False

    def read(self, obj: DecodedObject) -> Job:
        job, fields = super().read(obj), FieldReader(obj.spec, "spec")
        launcher_job = _read_launcher_job(job, fields, super().run_policy(obj), obj)
        own = {
            "slotsPerWorker": fields.integer("slotsPerWorker", 1, maximum=MAX_INT32),
            "runLauncherAsWorker": fields.boolean("runLauncherAsWorker", default=False),
            FORM_FIELD: _read_ssh_path(fields),
            "mpiImplementation": fields.choice(
                "mpiImplementation", list(MPIImplementation), MPIImplementation.OPEN_MPI.value
            ),
        }
        specs = tuple(_with_retries(spec, launcher_job) for spec in job.replica_specs)
        policy = _with_scheduling_defaults(job.run_policy.scheduling_policy, specs, obj)
        return attrs.evolve(
            job,
            replica_specs=specs,
            run_policy=attrs.evolve(job.run_policy, scheduling_policy=policy),
            launcher_job=launcher_job,
            spec=fields.canonicalized(**own),
        )

    def read_status(self, obj: DecodedObject) -> JobStatus:
        wire = _without_eviction(status_codec.decode(obj.status))
        return attrs.evolve(replica_map_status.read(wire, self.kind), version=obj.chosen_version)

    def write_status(self, status: JobStatus) -> ReadOnlyJSON:
        wire = super().write_status(status)
        # Those of mpi-operator may have been changed when they were read.
        kept = {"conditions"} if status.written_by_other_operator else set()
        return {name: value for name, value in wire.items() if name not in kept}

    def run_policy(self, obj: DecodedObject) -> RunPolicy:
        policy = super().run_policy(obj)
        decides = policy.failure_policy is not None
        return attrs.evolve(
            policy,
            ttl_after_finished_s=policy.ttl_after_finished_s if _ttl_deletes_job(obj) else None,
            active_deadline_s=policy.active_deadline_s if decides else None,
            backoff_limit=None,
        )

    def messages(self, job: Job) -> ConditionMessages:
        return MPIJobMessages(job.resource.kind, job.key)

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        labels = {
            _OPERATOR_LABEL: OPERATOR,
            f"{LABEL_PREFIX}/job-name": job.key.name,
            _ROLE_LABEL: replica.type,
        }
        # With the launcher among the workers, each pod has an index of its own.
        launcher_count = 1 if job.spec.get("runLauncherAsWorker") else 0
        if replica.type == WORKER:
            labels[_INDEX_LABEL] = str(replica.index + launcher_count)
        elif launcher_count:
            labels[_INDEX_LABEL] = "0"
        return labels

    def pod_labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        return {}

    def service_labels(self, job: Job, selector: Mapping[str, str]) -> Mapping[str, str]:
        return {"app": job.key.name}

    def publishes_not_ready_addresses(self, job: Job) -> bool:
        # Otherwise a launcher that waits for its own name would never become ready.
        return bool(job.spec.get("runLauncherAsWorker"))

    @property
    def orphan_selector(self) -> str:
        return f"{_OPERATOR_LABEL}={OPERATOR}"

    @property
    def validation_rules(self) -> Sequence[ReadOnlyJSON]:
        return [cel_rules.worker_name_length(self.kind.replica_specs_field)]

    def _warnings(self, fields: FieldReader) -> Iterator[SpecWarning]:
        entries = fields.object(self.kind.replica_specs_field)
        launcher = entries.object("Launcher")
        if launcher.object("template").object("spec").string("restartPolicy"):
            yield _TEMPLATE_POLICY_WARNING
        policy = fields.string("launcherCreationPolicy", AT_STARTUP)
        if policy not in ("", AT_STARTUP, WAIT_FOR_WORKERS):
            message = (
                f"spec.launcherCreationPolicy is {quoted(policy)}, which counts as "
                f"{WAIT_FOR_WORKERS}: write {AT_STARTUP} or {WAIT_FOR_WORKERS}"
            )
            yield SpecWarning("UnknownLauncherCreationPolicy", message)
        policies = {name: entries.object(name).string("restartPolicy") for name in entries.names()}
        yield from failure_policy_effects.restart_policy_warnings(
            fields.object("runPolicy"), policies
        )


def _read_launcher_job(
    job: Job, fields: FieldReader, limits: RunPolicy, obj: DecodedObject
) -> LauncherJob:
    policy = fields.string("launcherCreationPolicy") or AT_STARTUP
    decides = limits.failure_policy is not None
    return LauncherJob(
        # Each retry is a decision of the failure policy, and its deadline is for all attempts.
        backoff_limit=0 if decides else limits.backoff_limit,
        active_deadline_s=None if decides else limits.active_deadline_s,
        ttl_after_finished_s=None if _ttl_deletes_job(obj) else limits.ttl_after_finished_s,
        # Without workers, the launcher alone is the gang.
        waits_for_workers=policy != AT_STARTUP and job.replica_count(WORKER) > 0,
    )


def _without_eviction(status: JSON) -> JSON:
    """Return a status that is not Failed because a worker was evicted.

    mpi-operator reports that while the launcher goes on; only an end has a completion time.
    """
    if status.get("completionTime"):
        return status
    stated = [
        {**one, "status": "False"}
        if (one.get("type"), one.get("reason")) == (conditions.FAILED, _EVICTED_REASON)
        else one
        for one in status_codec.mappings(status, "conditions")
    ]
    return {**status, "conditions": stated}


def _ttl_deletes_job(obj: DecodedObject) -> bool:
    """Return whether the TTL deletes the job, and not only its launcher's Job."""
    return obj.metadata.annotation(TTL_DELETES_JOB_ANNOTATION) == "true"


def _read_ssh_path(fields: FieldReader) -> str:
    path = fields.string(FORM_FIELD) or DEFAULT_SSH_PATH
    if ":" in path:
        message = f"is {quoted(path)}, but a mount path has no colon: use a path like /home/me/.ssh"
        raise InvalidJobError(message, field=fields.path_of(FORM_FIELD))
    return path


def _with_retries(spec: ReplicaSpec, launcher_job: LauncherJob) -> ReplicaSpec:
    """Return a spec by whose retry policy failed workers are replaced; the Job has the launcher's.

    The first container is the one that takes part in the job, whatever its name is.
    """
    container = str(spec.template["spec"]["containers"][0]["name"])
    if spec.type == WORKER:
        return attrs.evolve(spec, container=container, retry_policy=RetryPolicy.ALL)
    return attrs.evolve(
        spec,
        container=container,
        retry_policy=RetryPolicy.NONE,
        create_last=launcher_job.waits_for_workers,
    )


def _with_scheduling_defaults(
    policy: SchedulingPolicy, specs: Sequence[ReplicaSpec], obj: DecodedObject
) -> SchedulingPolicy:
    """Return the settings of the gang with what mpi-operator derives from the rest of the job."""
    classes = (spec.template["spec"].get("priorityClassName") for spec in specs)
    return attrs.evolve(
        policy,
        queue=policy.queue or obj.metadata.annotation(_QUEUE_ANNOTATION),
        priority_class=policy.priority_class or next(filter(None, classes), ""),
        schedule_timeout_s=policy.schedule_timeout_s or 0,
    )
