"""What a failure policy changes in a job, and which of its fields have no effect then."""

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from dlctl.api.job import Job, ReplicaSpec, SpecWarning
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.dialects.failure_policy.schema import FIELD
from dlctl.dialects.field_reader import FieldReader

# A checkpoint of a large model is rarely written sooner.
_MIN_GRACE_S: Final = 60


def with_failure_policy(job: Job) -> Job:
    """Return the job with what its failure policy changes: it decides, and not the kubelet."""
    if not job.has_failure_policy:
        return job
    elasticity = job.elasticity
    if elasticity is not None:
        elasticity = attrs.evolve(elasticity, job_restart_limit=0, requires_launcher=False)
    return attrs.evolve(
        job,
        replica_specs=tuple(
            _without_restarts(spec) if job.failure_policy_decides(spec.type) else spec
            for spec in job.replica_specs
        ),
        elasticity=elasticity,
        warnings=(*job.warnings, *_grace_warning(job)),
    )


def restart_policy_warnings(
    run_policy: FieldReader, policies: Mapping[str, str]
) -> Iterator[SpecWarning]:
    """Yield a warning if types have a restart policy that the failure policy overrides."""
    overridden = [name for name, policy in policies.items() if policy not in ("", "Never")]
    if overridden and FIELD in run_policy:
        message = (
            f"{', '.join(overridden)}: the restart policy has no effect, because "
            f"runPolicy.{FIELD} decides about failures"
        )
        yield SpecWarning("RestartPolicyIgnored", message)


def _without_restarts(spec: ReplicaSpec) -> ReplicaSpec:
    pod_spec = {**spec.template["spec"], "restartPolicy": "Never"}
    template = {**spec.template, "spec": pod_spec}
    # No failure is permanent by itself: the policy decides.
    return attrs.evolve(spec, template=template, retry_policy=RetryPolicy.ALL)


def _grace_warning(job: Job) -> Iterator[SpecWarning]:
    short = [
        f"{spec.type} {spec.grace_period_s} s"
        for spec in job.replica_specs
        if spec.grace_period_s < _MIN_GRACE_S
    ]
    if short:
        message = (
            f"terminationGracePeriodSeconds is short ({', '.join(short)}): programs that save a "
            f"checkpoint when their job restarts may need {_MIN_GRACE_S} s or more"
        )
        yield SpecWarning("ShortGracePeriod", message)
