"""``dlctl render``: the exact child objects that manifests would get, without any cluster."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any, Final

import attrs
import yaml

from dlctl.api.elastic import WORKER
from dlctl.api.job import Job
from dlctl.api.meta import UID
from dlctl.cli.frameworks import loadable
from dlctl.cli.manifests import as_job_object, job_kind, load, namespaced
from dlctl.dialects.kinds import Kind, served_kinds
from dlctl.errors import ConfigError, InvalidJobError
from dlctl.reconcilers.children.render import Renderer
from dlctl.reconcilers.membership.plan_membership import with_members
from dlctl.reconcilers.membership.selection import initial_membership

# The server gives every object a UID; offline, one that cannot be mistaken for such.
OFFLINE_UID = UID("00000000-0000-0000-0000-000000000000")
# Like those that a server puts behind a ``generateName``, of which it keeps 58 characters.
_SUFFIX: Final = "x5c7v"
_MAX_PREFIX_CHARS: Final = 58


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the services and pods that jobs would get, and what else they would, but for "
        "secrets. Nothing is asked of a cluster, which gives the UID and so, where the manifest "
        "has none, the RuntimeId in the names. It also generates names: an example stands for a "
        "generateName."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="manifests, - for stdin")
    parser.add_argument(
        "-n", "--namespace", default="default", help="for jobs that name none (%(default)s)"
    )
    parser.set_defaults(command=render)


def render(args: argparse.Namespace) -> int:
    served = served_kinds(loadable())
    children: list[dict[str, Any]] = []
    for manifest in load(args.files):
        kind = job_kind(served, manifest)
        if kind is not None:
            children += _children(kind, _named(kind, namespaced(manifest, args.namespace)))
    if not children:
        raise ConfigError("none of the manifests is a job of a kind that dlctl serves")
    yaml.safe_dump_all(children, sys.stdout, sort_keys=False)
    return 0


def with_all_workers_listed(job: Job) -> Job:
    """Return a job as its last pod finds it: one that scales has all of its workers listed."""
    if job.elasticity is None:
        return job
    roster = initial_membership(job.replica_count(WORKER))
    return with_members(job, attrs.evolve(roster, hosts=roster.members))


def _named(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest with a name like the one that a server would generate for it."""
    metadata = manifest["metadata"]
    prefix = metadata.get("generateName")
    if metadata.get("name") or not isinstance(prefix, str) or not prefix:
        return manifest
    name = prefix[:_MAX_PREFIX_CHARS] + _SUFFIX
    print(
        f"dlctl: {kind.singular} {prefix}: the API server generates the name of each job; "
        f"it is {name} here",
        file=sys.stderr,
    )
    return {**manifest, "metadata": {**metadata, "name": name}}


def _children(kind: Kind, manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    manifest["metadata"].setdefault("uid", OFFLINE_UID)
    obj = as_job_object(manifest)
    try:
        job = kind.read(obj)
    except InvalidJobError as error:
        raise ConfigError(f"{kind.singular} {obj.metadata.name}: {error}") from error
    renderer = Renderer(with_all_workers_listed(job), kind.dialect_of(obj))
    for companion in renderer.dependents(()):
        yield renderer.dependent(companion)
    for replica in renderer.replicas_with_service():
        yield renderer.service(replica)
    for replica in renderer.job.replicas:
        yield renderer.pod(replica)
