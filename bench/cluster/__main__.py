"""Plain writers, dlctl and, where its program is given, another operator, in turns.

``python -m bench.cluster FOLDER`` needs a cluster with kwok's nodes and an audit log in ``FOLDER``,
which ``make bench-cluster`` makes. Figures are medians over the rounds; times are ratios to the
plain writers of the same round, which create as many pods and services.
"""

import argparse
import asyncio
import json
import shlex
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from bench.cluster.load import ApiServer, jobs_s, plain_writes_s
from bench.cluster.operators import Operator, dlctl, peer
from bench.process_usage import cpu_s, rss_mb
from e2e.cluster import programs
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.programs import Release
from tests.support.history import WRITES

# The plain writers are measured with fewer, which take the same time each.
_MAX_PLAIN: Final = 1000


@attrs.frozen
class Scenario:
    """A number of jobs, and the replicas of each."""

    jobs: int
    replicas: int

    def __str__(self) -> str:
        return f"{self.jobs}x{self.replicas}"

    @property
    def total(self) -> int:
        return self.jobs * self.replicas


@attrs.frozen
class Measurement:
    """The cost of one scenario for one operator."""

    operator: str
    scenario: str
    pods_ratio: float | None
    running_ratio: float | None
    cpu_ms_per_child: float
    rss_mb: float
    idle_rss_mb: float
    writes: int
    writes_per_job: float
    plain_s: float


async def measure(
    server: ApiServer, operator: Operator, scenario: Scenario, folder: Path
) -> Measurement:
    plain = min(scenario.total, _MAX_PLAIN)
    plain_s = await plain_writes_s(server, plain) * scenario.total / plain
    idle_mb, cpu_before_s = rss_mb(operator.pid), cpu_s(operator.pid)
    times, namespace = await jobs_s(server, scenario.jobs, scenario.replicas)
    used_s = cpu_s(operator.pid) - cpu_before_s
    writes = _writes(folder / "audit.log", namespace)
    print(f"  {operator.name} {scenario}: {times} {dict(writes)}", file=sys.stderr, flush=True)
    return Measurement(
        operator.name,
        str(scenario),
        _ratio(times.children_s, plain_s),
        _ratio(times.running_s, plain_s),
        1000 * used_s / (2 * scenario.total),
        rss_mb(operator.pid),
        idle_mb,
        sum(writes.values()),
        sum(writes.values()) / scenario.jobs,
        plain_s,
    )


def _ratio(value: float | None, plain_s: float) -> float | None:
    return None if value is None else value / plain_s


def _writes(audit_log: Path, namespace: str) -> Counter[str]:
    """Return the operator's writes in a namespace, by verb and resource."""
    found: Counter[str] = Counter()
    others = ("Python", "kwok", "kube-", "kubectl")
    with audit_log.open() as lines:
        for line in lines:
            if namespace not in line:
                continue
            entry = json.loads(line)
            if entry["verb"] in WRITES and not entry.get("userAgent", "").startswith(others):
                target = entry.get("objectRef", {})
                resource = "/".join(target[k] for k in ("resource", "subresource") if target.get(k))
                found[f"{entry['verb']} {resource}"] += 1
    return found


def medians(measured: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Return one row for each operator and scenario."""
    rows: dict[tuple[str, str], list[Measurement]] = {}
    for one in measured:
        rows.setdefault((one.operator, one.scenario), []).append(one)
    result = []
    for (operator, scenario), runs in rows.items():
        row: dict[str, Any] = {"operator": operator, "scenario": scenario}
        for field in attrs.fields(Measurement)[2:]:
            values = [getattr(run, field.name) for run in runs]
            known = [v for v in values if v is not None]
            row[field.name] = round(statistics.median(known), 2) if known else None
        result.append(row)
    return result


async def measure_all(args: argparse.Namespace) -> list[Measurement]:
    folder: Path = args.folder
    config = json.loads((folder / "admin.kubeconfig").read_text())
    measured = []
    async with ApiServer.of(config) as server:
        for number in range(args.rounds):
            print(f"round {number + 1} at {time.strftime('%X')}", file=sys.stderr, flush=True)
            starts = [dlctl(folder, shlex.split(args.flags))]
            if args.peer:
                starts.append(peer(folder, args.peer))
            for start in starts:
                with start as operator:
                    measured += [
                        await measure(server, operator, scenario, folder)
                        for scenario in args.scenarios
                    ]
    return measured


def _scenario(text: str) -> Scenario:
    jobs, replicas = text.split("x")
    return Scenario(int(jobs), int(replicas))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("folder", type=Path, help="the cluster's folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", type=Path, help="the program of training-operator v1")
    parser.add_argument("--flags", default="", help="flags of dlctl controller")
    parser.add_argument("--out", type=Path, help="write the figures to this file as JSON, too")
    parser.add_argument(
        "--scenarios",
        type=_scenario,
        nargs="+",
        metavar="JOBSxREPLICAS",
        default=[Scenario(1, 1000), Scenario(200, 4)],
    )
    args = parser.parse_args()
    cluster = ControlPlane(args.folder, programs.folder(Release.NEWEST))
    cluster.kubectl("apply", "--server-side", "--filename=manifests/base/crds.yaml")
    rows = medians(asyncio.run(measure_all(args)))
    for row in rows:
        print(json.dumps(row))
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
