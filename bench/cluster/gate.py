"""Fails when dlctl has become slower or writes more: ratios against a stored baseline.

``python -m bench.cluster.gate FOLDER`` needs a cluster like ``bench.cluster``; ``make bench-gate``
makes one. ``--update`` stores what is measured as the new baseline.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Final

from bench.cluster.__main__ import measure_in
from bench.cluster.baseline import ratios, regressions
from bench.cluster.operators import dlctl
from bench.cluster.results import Row
from bench.cluster.scenarios import parse_scenario
from bench.pods import make_pod

BASELINE: Final = Path(__file__).with_name("baseline.json")
SCENARIOS: Final = ("1x200", "40x4")
_ROUNDS: Final = 3
_REFERENCE_PODS: Final = 20
_REFERENCE_RUNS: Final = 20


def reference_ms() -> float:
    """Return the least processor time that encoding and decoding some pods takes, in ms."""
    pods = [make_pod(number) for number in range(_REFERENCE_PODS)]
    taken = []
    for _ in range(_REFERENCE_RUNS):
        before = time.process_time()
        json.loads(json.dumps(pods))
        taken.append(time.process_time() - before)
    return 1000 * min(taken)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster.gate", description=__doc__)
    parser.add_argument("folder", type=Path, help="the cluster's folder")
    parser.add_argument("--update", action="store_true", help="store the figures as the baseline")
    args = parser.parse_args()
    reference = reference_ms()
    measured = ratios(asyncio.run(_rows(args.folder)), reference)
    print(json.dumps(measured, indent=1))
    if args.update:
        BASELINE.write_text(json.dumps(measured, indent=1) + "\n")
        return 0
    worse = list(regressions(measured, json.loads(BASELINE.read_text())))
    for regression in worse:
        print(f"WORSE {regression}")
    return 1 if worse else 0


async def _rows(folder: Path) -> list[Row]:
    scenarios = dict(map(parse_scenario, SCENARIOS))
    return [row async for row in measure_in(folder, [dlctl(folder, ())], scenarios, _ROUNDS)]


if __name__ == "__main__":
    sys.exit(main())
