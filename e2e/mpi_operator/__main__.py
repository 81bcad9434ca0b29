"""``python -m e2e.mpi_operator``: the same MPIJobs under mpi-operator and under dlctl.

Runs inside ``python -m e2e.cluster run -- ...``, and prints what differs without being meant to.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import attrs

from dlctl.api.objects.pod_groups import COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS
from dlctl.kube.client import Client
from dlctl.kube.config import load
from e2e.install import MANIFESTS
from e2e.kubectl import Kubectl, KubectlError
from e2e.mpi_operator import cases, dlctl_process, peer, pod_groups
from e2e.mpi_operator.difference import differences, not_meant
from e2e.mpi_operator.meant import MEANT
from e2e.mpi_operator.observed import FOLLOWED, MPIJOBS, Observed
from e2e.mpi_operator.recording import Record, record

_POD_GROUPS: Final = {
    cases.VOLCANO: VOLCANO_POD_GROUPS,
    cases.COSCHEDULING: COSCHEDULING_POD_GROUPS,
}


@attrs.frozen
class Operator:
    """An operator: its CRD, and how it is run with which flags for each group of cases."""

    name: str
    definition: Callable[[], Path]
    run: Callable[..., AbstractContextManager[Any]]
    flags: Mapping[str, Sequence[str]]


PEER: Final = Operator(
    "peer",
    peer.definition,
    peer.running,
    {
        cases.PLAIN: peer.UNLIMITED,
        cases.VOLCANO: (*peer.UNLIMITED, "--gang-scheduling=volcano"),
        cases.COSCHEDULING: (*peer.UNLIMITED, "--gang-scheduling=scheduler-plugins"),
        cases.DOMAIN: (*peer.UNLIMITED, "--cluster-domain=cluster.example"),
    },
)
DLCTL: Final = Operator(
    "dlctl",
    lambda: MANIFESTS / "base" / "crds.yaml",
    dlctl_process.running,
    {
        cases.PLAIN: (),
        cases.VOLCANO: ("--gang-scheduler-name=volcano",),
        cases.COSCHEDULING: ("--gang-scheduler-name=scheduler-plugins",),
        cases.DOMAIN: ("--cluster-domain=cluster.example",),
    },
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.mpi_operator", description=__doc__)
    parser.add_argument("--group", choices=list(cases.GROUPS), action="append")
    parser.add_argument("--case", action="append", help="only these, by their names")
    parser.add_argument("--theirs", type=Path, help="a file with the records of mpi-operator")
    parser.add_argument("--ours", type=Path, help="a file with those of dlctl")
    args = parser.parse_args()
    for resource in _POD_GROUPS.values():
        Kubectl()("apply", "--server-side", "-f", "-", stdin=json.dumps(pod_groups.crd(resource)))
    # Its own CRD, which cannot replace that of dlctl.
    theirs = _records(PEER, args, args.theirs)
    ours = _records(DLCTL, args, args.ours)
    left = 0
    for group in ours:
        left += _report(group, theirs[group], ours[group])
    print(f"{left} differences that are not meant")
    return 1 if left else 0


def _records(
    operator: Operator, args: argparse.Namespace, file: Path | None
) -> Mapping[str, Mapping[str, Record]]:
    """Return the records of an operator by group: those of the file, or new ones."""
    if file and file.exists():
        found: Mapping[str, Mapping[str, Record]] = json.loads(file.read_text())
        return found
    install(operator.definition())
    records = {
        group: asyncio.run(_recorded(operator, group, args.case))
        for group in args.group or cases.GROUPS
    }
    if file:
        file.write_text(json.dumps(records, indent=1))
    return records


def install(definition: Path) -> None:
    """Install a CRD of MPIJobs, or update it."""
    Kubectl()("apply", "--server-side", "--force-conflicts", "-f", str(definition))
    Kubectl().until(_served, within_s=30, what="MPIJobs to be served")


def new_namespace(name: str) -> str:
    """Create a namespace in which pods can be created, and return its name."""
    Kubectl()("create", "namespace", name)
    Kubectl().until(
        lambda: Kubectl(name).get("serviceaccount", "default"),
        within_s=20,
        what="an account for pods",
    )
    return name


def _served() -> bool:
    try:
        Kubectl()("get", "--raw", f"{MPIJOBS.path()}?limit=1")
    except KubectlError:
        return False
    return True


async def _recorded(
    operator: Operator, group: str, names: Sequence[str] | None
) -> Mapping[str, Record]:
    found = [case for case in cases.GROUPS[group] if not names or case.name in names]
    folder = Path(os.environ["E2E_CLUSTER"])
    namespace = new_namespace(f"{operator.name}-{group}")
    resources = [*FOLLOWED, *([_POD_GROUPS[group]] if group in _POD_GROUPS else [])]
    began = time.monotonic()
    async with Client(await load(), user_agent="side-by-side") as client:
        with operator.run(folder, f"--namespace={namespace}", *operator.flags[group]):
            async with Observed.of(client, namespace, resources) as seen:
                records = await record(seen, found)
    took_s = time.monotonic() - began
    print(f"{operator.name} {group}: {len(found)} cases in {took_s:.0f} s", file=sys.stderr)
    return records


def _report(group: str, theirs: Mapping[str, Record], ours: Mapping[str, Record]) -> int:
    left = not_meant(differences(theirs, ours), MEANT)
    for difference, places in sorted(left.items(), key=lambda one: -len(one[1])):
        where = ", ".join(dict.fromkeys(case for case, _ in places))
        print(f"{group}: {difference.path}")
        print(f"    mpi-operator: {difference.theirs}\n    dlctl:        {difference.ours}")
        print(f"    {len(places)} times, in {where[:200]}")
    return len(left)


if __name__ == "__main__":
    sys.exit(main())
