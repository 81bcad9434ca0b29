"""Plain writers, dlctl and, where its program is given, another operator, in turns.

``python -m bench.cluster FOLDER`` needs a cluster with kwok's nodes and an audit log in ``FOLDER``,
which ``make bench-cluster`` makes. Figures are medians over the rounds; those named ``ratio`` are
times relative to the plain writers of the same round.

A scenario is ``JOBSxREPLICAS`` or one of these, with the sizes that are the default:
``fairness:5000x4`` (small jobs beside a large one), ``first-write``, ``floor:1x1000`` (dlctl's
children without dlctl), ``foreign:10000`` (pods of others), ``gang-restart:1000`` and
``job-restart:1000`` (ranks), ``live:1000x4`` (processor time by live jobs), ``mpi:100x4`` (MPIJobs
of v2beta1, and the workers of each), ``one-service:1x1000`` (jobs with a service each instead of
each replica), ``overload:200x4``, ``restart:1000x10`` (of the controller), ``sustained:10000x4``
and, with a TTL, ``sustained-ttl:10000x4``.
"""

import argparse
import asyncio
import json
import shlex
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from bench.cluster import results
from bench.cluster.api_server import ApiServer
from bench.cluster.mpi_operator import mpi_operators
from bench.cluster.operators import Program, dlctl
from bench.cluster.peer import peer
from bench.cluster.results import Row, Run, medians
from bench.cluster.scenario import Bench, Scenario, fits
from bench.cluster.scenarios import parse_scenario
from e2e.cluster import programs
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.programs import Release

_DEFAULT: Final = ("1x1000", "200x4")


async def measure(
    bench: Bench, operators: Sequence[Program], name: str, scenario: Scenario, rounds: int
) -> list[Row]:
    """Measure a scenario with each operator that it fits, in turns."""
    runs = []
    for number in range(rounds):
        for program in operators:
            if fits(program, scenario):
                run = Run(program.name, name, await scenario.measure(bench, program))
                runs.append(run)
                at = f"round {number + 1} at {time.strftime('%X')}"
                print(f"{at}: {run}", file=sys.stderr, flush=True)
    return medians(runs)


async def measure_in(
    folder: Path, operators: Sequence[Program], scenarios: dict[str, Scenario], rounds: int
) -> AsyncIterator[Row]:
    """Install the definitions, measure, and yield the rows of each scenario once it is over."""
    cluster = ControlPlane(folder, programs.folder(Release.NEWEST))
    cluster.kubectl("apply", "--server-side", "--filename=manifests/base/crds.yaml")
    config = json.loads((folder / "admin.kubeconfig").read_text())
    async with ApiServer.of(config) as server:
        for name, scenario in scenarios.items():
            for row in await measure(Bench(server, folder), operators, name, scenario, rounds):
                yield row


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the cluster's folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", type=Path, help="the program of training-operator v1")
    parser.add_argument(
        "--mpi-operator", action="store_true", help="measure mpi-operator, too, and build it first"
    )
    parser.add_argument("--flags", default="", help="flags of dlctl controller")
    parser.add_argument("--out", type=Path, help="add the figures to this JSON file, too")
    parser.add_argument(
        "--scenarios",
        type=parse_scenario,
        nargs="+",
        metavar="SCENARIO",
        default=[parse_scenario(text) for text in _DEFAULT],
    )
    args = parser.parse_args()
    operators = [dlctl(args.folder, shlex.split(args.flags))]
    if args.peer:
        operators.append(peer(args.folder, args.peer))
    if args.mpi_operator:
        operators += mpi_operators(args.folder)
    asyncio.run(_report(args, operators))
    return 0


async def _report(args: argparse.Namespace, operators: Sequence[Program]) -> None:
    async for row in measure_in(args.folder, operators, dict(args.scenarios), args.rounds):
        print(json.dumps(row), flush=True)
        if args.out:
            results.write(args.out, [row])


if __name__ == "__main__":
    sys.exit(main())
