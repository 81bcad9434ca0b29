"""The annotation by which the replicas of a job share one headless service.

Their pods then have host names within the service's domain.
"""

from collections.abc import Mapping
from typing import Final

from dlctl.api.job import Job
from dlctl.api.status.job_status import JobPhase
from dlctl.dialects.dialect import Dialect
from dlctl.errors import InvalidJobError, quoted

SERVICE_ANNOTATION: Final = "dlctl.dev/service"
_PER_JOB: Final = "job"
_PER_REPLICA: Final = "replica"


def shares_service(job: Job, dialect: Dialect, annotations: Mapping[str, str]) -> bool:
    """Return whether the replicas of a job are to share one service.

    :raises InvalidJobError: if a new job cannot have what its annotation says. A later edit does
        not stop a job that has started.
    """
    given = annotations.get(SERVICE_ANNOTATION, _PER_REPLICA)
    if dialect.shares_service:
        return True
    if given == _PER_REPLICA or job.is_local:
        return False
    problem = _problem(given, job, dialect)
    if problem and job.status.phase is JobPhase.NEW:
        raise InvalidJobError(problem, field=f"metadata.annotations[{SERVICE_ANNOTATION}]")
    return not problem


def _problem(given: str, job: Job, dialect: Dialect) -> str:
    """Return why a job cannot have the services that its annotation says; empty if it can."""
    if given != _PER_JOB:
        return f"is {quoted(given)}: use {_PER_JOB} or {_PER_REPLICA}"
    if not dialect.has_services or not dialect.replica_labels:
        return (
            f"is {_PER_JOB}, but replicas of {job.resource.kind}s are reached by the names of "
            "their pods: remove the annotation"
        )
    for spec in job.replica_specs:
        for field in ("hostname", "subdomain"):
            if spec.template["spec"].get(field):
                return (
                    f"is {_PER_JOB}, which gives each pod a host name of its own, but the template "
                    f"of type {spec.type} sets {field}: remove one of them"
                )
    return ""
