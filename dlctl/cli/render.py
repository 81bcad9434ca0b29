"""``dlctl render``: print the child objects of jobs exactly as created, without a cluster."""

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
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import served_kinds
from dlctl.errors import ConfigError, InvalidJobError
from dlctl.reconcilers.children.render import Renderer
from dlctl.reconcilers.membership.plan_membership import with_members
from dlctl.reconcilers.membership.selection import initial_membership

# Stands for the UID that the server assigns; cannot be mistaken for a real one.
OFFLINE_UID = UID("00000000-0000-0000-0000-000000000000")
# Like the suffix that the server appends to a ``generateName``, of which it keeps 58 characters.
_SUFFIX: Final = "x5c7v"
_MAX_PREFIX_CHARS: Final = 58


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the pods, services and other child objects that jobs would get, except secrets. "
        "No cluster is needed: UIDs are zero, and so is the RuntimeId in names unless the "
        "manifest sets one. A fixed suffix completes a generateName."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="manifests, - for stdin")
    parser.add_argument(
        "-n", "--namespace", default="default", help="namespace of jobs that set none (%(default)s)"
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
    """Return a job as its last pod sees it: a job that scales lists all of its workers."""
    if job.elasticity is None:
        return job
    membership = initial_membership(job.replica_count(WORKER))
    return with_members(job, attrs.evolve(membership, hosts=membership.members))


def _named(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest with a name like one that the server generates."""
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
    obj = kind.decode(as_job_object(manifest))
    try:
        job = kind.read(obj)
    except InvalidJobError as error:
        raise ConfigError(f"{kind.singular} {obj.metadata.name}: {error}") from error
    renderer = Renderer(with_all_workers_listed(job), obj.dialect)
    for dependent in renderer.dependents(()):
        yield renderer.dependent(dependent)
    for replica in renderer.replicas_with_service():
        yield renderer.service(replica)
    for replica in renderer.job.replicas:
        yield renderer.pod(replica)
