"""``dlctl render``: print the child objects of jobs exactly as created, without a cluster."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from dlctl.cli.installed_kinds import installed_kinds
from dlctl.cli.manifests.checks import check, print_warnings
from dlctl.cli.manifests.job_renderer import job_renderer
from dlctl.cli.manifests.loading import (
    as_new,
    check_built,
    job_kind,
    load,
    no_job_error,
    with_example_name,
)
from dlctl.dialects.kind import Kind
from dlctl.manifest_yaml import ManifestDumper


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
    served = installed_kinds()
    children: list[dict[str, Any]] = []
    manifests = list(load(args.files))
    check(served, manifests, args.namespace)
    print_warnings(served, manifests, args.namespace)
    jobs = [(kind, each) for each in manifests if (kind := job_kind(served, each.obj))]
    if not jobs:
        check_built(manifests)
        raise no_job_error(manifests)
    for kind, manifest in jobs:
        found = list(_children(kind, _named(kind, as_new(manifest.obj, args.namespace))))
        if not found:
            print(f"dlctl: {manifest.title} gets no objects without replicas", file=sys.stderr)
        children += found
    yaml.dump_all(children, sys.stdout, ManifestDumper, sort_keys=False)
    return 0


def _named(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest with a name like one that the server generates."""
    named = with_example_name(manifest)
    if named is not manifest:
        print(
            f"dlctl: {kind.singular} {manifest['metadata']['generateName']}: the API server "
            f"generates the name of each job; it is {named['metadata']['name']} here",
            file=sys.stderr,
        )
    return named


def _children(kind: Kind, manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    renderer = job_renderer(kind, manifest)
    for dependent in renderer.dependents(()):
        yield renderer.dependent(dependent)
    for replica in renderer.replicas_with_service():
        yield renderer.service(replica)
    job = renderer.job
    for replica in job.replicas:
        if job.has_own_pod(replica):
            yield renderer.pod(replica)
    if job.launcher_job is not None:
        yield renderer.launcher_job(suspended=job.run_policy.suspended)
