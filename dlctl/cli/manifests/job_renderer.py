"""The renderer of a manifest's job: no server has given it a UID, and it has all of its workers."""

from typing import Any, Final

import attrs

from dlctl.api.job import WORKER, Job
from dlctl.api.meta import UID
from dlctl.cli.manifests.loading import as_job_object
from dlctl.dialects.kind import Kind
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.membership.planner import with_members
from dlctl.reconcilers.membership.selection import initial_membership

# Stands for the UID that the server assigns; cannot be mistaken for a real one.
OFFLINE_UID: Final = UID("00000000-0000-0000-0000-000000000000")


def job_renderer(kind: Kind, manifest: dict[str, Any]) -> Renderer:
    """Return the renderer of a valid job that has a name and a namespace, but no UID yet."""
    manifest["metadata"].setdefault("uid", OFFLINE_UID)
    obj = kind.decode(as_job_object(kind, manifest))
    return Renderer(with_all_workers_listed(kind.read(obj)), obj.dialect)


def with_all_workers_listed(job: Job) -> Job:
    """Return a job as its last pod sees it: a job that scales lists all of its workers."""
    if job.elasticity is None:
        return job
    membership = initial_membership(job.replica_count(WORKER))
    return with_members(job, attrs.evolve(membership, hosts=membership.members))
