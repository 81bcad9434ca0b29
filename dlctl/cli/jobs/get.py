"""``dlctl get``: list jobs of all kinds, or print some of them; or list nodes."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, Final

import yaml

from dlctl.cli.jobs import nodes
from dlctl.cli.jobs.cluster import TargetCluster, add_kubeconfig_arguments, run_in_cluster
from dlctl.cli.jobs.job_argument import add_job_argument
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.names import known_kinds, parse_selection
from dlctl.cli.jobs.tables import job_table
from dlctl.errors import ConfigError
from dlctl.manifest_yaml import ManifestDumper

_OUTPUTS: Final = ("wide", "name", "json", "yaml")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the jobs of a namespace, of all kinds or of one. With names, only those. With the "
        "word nodes, list the nodes of the cluster: what they announce, and which jobs failed by "
        "their faults."
    )
    add_job_argument(
        parser,
        "words",
        nargs="*",
        metavar="KIND | NAME | KIND/NAME | nodes",
        help="a kind such as pytorchjob, a job's name, or both; or the word nodes",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=_OUTPUTS,
        help="more columns, names alone, or whole objects; several are a List",
    )
    add_kubeconfig_arguments(parser, all_namespaces=True)
    parser.set_defaults(command=lambda args: run_in_cluster(args, lambda it: get(it, args)))


async def get(cluster: TargetCluster, args: argparse.Namespace) -> int:
    if args.words and args.words[0] in nodes.WORDS:
        return await nodes.get_nodes(cluster, args)
    kinds, names = parse_selection(args.words, known_kinds(cluster.kinds))
    if names and not cluster.namespace:
        raise ConfigError("-A is for lists: give the namespace of a named job with -n")
    if names:
        jobs = [await cluster.job(name) for name in names]
    else:
        jobs = await cluster.jobs(kinds)
    _print(cluster, jobs, args.output, one=len(names) == 1)
    return 0


def _print(
    cluster: TargetCluster, jobs: Sequence[JobSnapshot], output: str | None, *, one: bool
) -> None:
    if output in ("json", "yaml"):
        print(_dumped(jobs[0].manifest if one else _list(jobs), output), end="")
    elif output == "name":
        for job in jobs:
            print(f"{job.kind.singular}.{job.kind.resource.group}/{job.key.name}")
    elif not jobs:
        where = f"namespace {cluster.namespace}" if cluster.namespace else "any namespace"
        print(f"no jobs in {where}", file=sys.stderr)
    else:
        everywhere = not cluster.namespace
        wide = output == "wide"
        now = cluster.clock.now()
        print("\n".join(job_table(jobs, now, wide=wide, namespaces=everywhere)))


def _list(jobs: Sequence[JobSnapshot]) -> dict[str, Any]:
    items = [job.manifest for job in jobs]
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}


def _dumped(value: Any, output: str) -> str:
    if output == "json":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return yaml.dump(value, Dumper=ManifestDumper, width=120, allow_unicode=True)
