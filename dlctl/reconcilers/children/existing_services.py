"""Whether the replicas of a running job share one service: as when it started. Pure."""

from collections.abc import Collection

import attrs

from dlctl.api.job import Job


def with_existing_services(job: Job, services: Collection[str]) -> Job:
    """Return a job that keeps the kind of services it has, by their names.

    The host names of pods cannot change, and the programs in them know those of the others. A job
    without services, such as a new or suspended one, follows its annotation.
    """
    shares = job.shared_service in services if services else job.shares_service
    return job if shares == job.shares_service else attrs.evolve(job, shares_service=shares)
