"""``dlctl get nodes``: what nodes announce, and what jobs charge them with.

The signals are the default ones, and charges count for as long as by default: the settings of the
cluster's controller are not known here.
"""

import argparse
import datetime
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.objects.node_signals import NodeSignals
from dlctl.api.objects.nodes import NODES, Node
from dlctl.cli.jobs.cluster import TargetCluster
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.tables import aligned, duration
from dlctl.errors import ConfigError, DlctlError
from dlctl.kube.errors import ForbiddenError
from dlctl.name_lists import first_names
from dlctl.options import Options
from dlctl.reconcilers.nodes.charges import Charge, ChargeRules, NodeCharges, charges_of

WORDS: Final = ("node", "nodes")
_HEADER: Final = ("NODE", "SIGNALS", "CHARGED BY", "CAUSES", "LAST", "AVOIDED")
_NONE: Final = "<none>"


async def get_nodes(cluster: TargetCluster, args: argparse.Namespace) -> int:
    if len(args.words) > 1 or args.output:
        message = "`dlctl get nodes` prints one table of all nodes: it takes no names and no -o"
        raise ConfigError(message)
    try:
        page = await cluster.client.list(NODES, Node)
        jobs = await attrs.evolve(cluster, namespace="").jobs(cluster.kinds)
    except ForbiddenError as error:
        message = "`dlctl get nodes` needs the right to list nodes, and jobs in all namespaces"
        raise DlctlError(f"{message}: {error}") from error
    if not page.items:
        print("the cluster has no nodes", file=sys.stderr)
        return 0
    # In all namespaces, only faults that the API proves count; in one, faults that logs prove, too.
    now, namespace = cluster.clock.now(), cluster.namespace
    print("\n".join(node_table(page.items, charges_by_node(jobs, now, namespace), now)))
    return 0


def charges_by_node(
    jobs: Iterable[JobSnapshot], now: datetime.datetime, namespace: str
) -> Mapping[str, NodeCharges]:
    """Return what counts against each charged node, for jobs of a namespace or of any."""
    by_node: dict[str, list[Charge]] = {}
    for job in jobs:
        for charge in charges_of(job.uid, job.key, job.status.attempts):
            by_node.setdefault(charge.node, []).append(charge)
    rules = ChargeRules(now, datetime.timedelta(seconds=Options().node_charge_ttl_s), namespace)
    counted = (rules.counted(node, charges) for node, charges in by_node.items())
    return {one.node: one for one in counted if one is not None}


def node_table(
    nodes: Sequence[Node], charges: Mapping[str, NodeCharges], now: datetime.datetime
) -> Iterator[str]:
    """Yield the lines of the table of nodes, by name."""
    options = Options()
    signals = NodeSignals.of(draining=options.node_drain_signals, fault=options.node_fault_signals)
    rows = [
        _row(node, signals, charges.get(node.metadata.name), now)
        for node in sorted(nodes, key=lambda node: node.metadata.name)
    ]
    yield from aligned([_HEADER, *rows])


def _row(
    node: Node, signals: NodeSignals, charges: NodeCharges | None, now: datetime.datetime
) -> Sequence[str]:
    draining, fault = signals.draining(node), signals.fault(node)
    shown = [f"draining ({draining.entry})"] if draining else []
    shown += [f"faulty ({fault.entry})"] if fault else []
    avoided = "no"
    if fault or (charges and charges.is_avoided):
        avoided = "by all jobs"
    elif charges:
        avoided = "by these jobs"
    return (
        node.metadata.name,
        ", ".join(shown) or _NONE,
        _jobs(charges) if charges else _NONE,
        ", ".join(charges.causes) if charges else _NONE,
        duration((now - charges.last).total_seconds()) if charges else _NONE,
        avoided,
    )


def _jobs(charges: NodeCharges) -> str:
    """Return the jobs that charge a node, the newest first: the first few, and how many more."""
    keys = list(dict.fromkeys(str(charge.key) for charge in reversed(charges.charges)))
    return first_names(keys)
