"""The cause of each injected fault is named, and no other replica is blamed.

Real processes in the pods of an embedded cluster. What a kubelet reports of nodes and images is
written through the API, as it does.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.status.verdict import Cause
from tests.faults import (
    collateral,
    exit_codes,
    kubelet,
    mpi,
    nodes,
    python_errors,
    starts,
    torchrun,
)
from tests.faults.fault import Blame, Fault
from tests.faults.images import make_images
from tests.faults.running import LIMIT_S, cluster, verdicts

_TOPICS: Final[dict[str, Sequence[Fault]]] = {
    "exit codes": exit_codes.FAULTS,
    "python": python_errors.FAULTS,
    "starts": starts.FAULTS,
    "torchrun": torchrun.FAULTS,
    "collateral": collateral.FAULTS,
    "mpi": mpi.FAULTS,
    "nodes": nodes.FAULTS,
}


def _groups() -> dict[str, list[Fault]]:
    """Return the faults by topic and needs: those of a group are injected or skipped together."""
    groups: dict[str, list[Fault]] = {}
    for topic, faults in _TOPICS.items():
        for fault in faults:
            name = f"{topic} with {', '.join(fault.needs)}" if fault.needs else topic
            groups.setdefault(name, []).append(fault)
    return groups


GROUPS: Final = _groups()
TABLE: Final = os.environ.get("FAULT_TABLE", "")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * LIMIT_S)]


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return make_images(tmp_path_factory.mktemp("images"))


_TOO_EARLY: Final = "a job without a policy is judged with its first failed replica"


@pytest.mark.parametrize(
    "group",
    [
        *GROUPS,
        pytest.param("without a policy", marks=pytest.mark.xfail(strict=False, reason=_TOO_EARLY)),
    ],
)
async def test_cause_is_named_and_no_other_replica_is_blamed(
    group: str, images: Mapping[str, Path]
) -> None:
    faults = GROUPS.get(group, collateral.WITHOUT_POLICY)
    if missing := faults[0].missing:
        pytest.skip(f"this machine lacks {missing}")
    async with cluster(images) as running:
        if not running.cluster.network.isolated:
            pytest.skip(f"no namespaces: {running.cluster.network.reason}")
        await kubelet.register(running.client)
        found = await verdicts(running, faults)
    outcomes = {fault.name: outcome(fault, found[fault.name]) for fault in faults}
    await asyncio.to_thread(write_table, faults, found, outcomes)
    assert outcomes == {fault.name: (fault.blame, fault.says) for fault in faults}


def outcome(fault: Fault, verdict: JSON) -> tuple[Blame, str]:
    """Return the found blame, with what the message was to say if it does."""
    message, expected = verdict.get("message", ""), fault.blame
    blame = Blame(
        Cause(verdict.get("cause", Cause.UNKNOWN)),
        verdict.get("replica", ""),
        verdict.get("exitCode") if expected.exit_code is not None else None,
        verdict.get("rank") if expected.rank is not None else None,
    )
    return blame, fault.says if fault.says in message else message


def write_table(
    faults: Sequence[Fault], found: dict[str, JSON], outcomes: dict[str, tuple[Blame, str]]
) -> None:
    """Append a row for each fault to the file that FAULT_TABLE names, for people."""
    if not TABLE:
        return
    with Path(TABLE).open("a", encoding="utf-8") as table:
        for fault in faults:
            verdict, expected = found[fault.name], (fault.blame, fault.says)
            row = (
                "right" if outcomes[fault.name] == expected else "WRONG",
                fault.name,
                f"{fault.blame.cause} {fault.blame.replica}",
                f"{verdict.get('cause')} {verdict.get('replica', '')}",
                verdict.get("confidence", ""),
                " ".join(verdict.get("message", "").split()),
            )
            table.write(f"| {' | '.join(row)} |\n")
