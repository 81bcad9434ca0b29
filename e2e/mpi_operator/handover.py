"""``python -m e2e.mpi_operator.handover``: each operator takes the other's jobs over, live.

Runs inside ``python -m e2e.cluster run -- ...``, on the CRD of dlctl, which serves both. Prints
what a change of the operator has replaced, rewritten or kept from its end.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.kube.client import Client
from dlctl.kube.config import load
from e2e.mpi_operator import dlctl_process, peer
from e2e.mpi_operator.__main__ import DLCTL, install, new_namespace
from e2e.mpi_operator.case import Step, mpijob
from e2e.mpi_operator.observed import FOLLOWED, Observed
from e2e.mpi_operator.steps import (
    launcher_fails,
    launcher_runs,
    launcher_succeeds,
    resumes,
    suspends,
    workers_run,
)

_STARTS: Final = (workers_run(), launcher_runs())
# By job, its run policy, what happens to it before the handover, and after it.
_JOBS: Final[Mapping[str, tuple[JSON, Sequence[Step], Sequence[Step]]]] = {
    "new": ({}, (), (*_STARTS, launcher_succeeds())),
    "running": ({}, _STARTS, (launcher_succeeds(),)),
    "retried": (
        {"backoffLimit": 2},
        (*_STARTS, launcher_fails(), launcher_runs(again=True)),
        (launcher_fails(), launcher_runs(again=True), launcher_succeeds()),
    ),
    "suspended": ({"suspend": True}, (), (resumes(), *_STARTS, launcher_succeeds())),
    "paused": ({}, (*_STARTS, suspends()), (resumes(), *_STARTS, launcher_succeeds())),
    "finished": ({"cleanPodPolicy": "Running"}, (*_STARTS, launcher_succeeds()), ()),
}
# Such as mpi-operator reports it; the order of conditions is each operator's own.
_SUCCEEDED: Final = ("Succeeded", "True", "MPIJobSucceeded")


async def handed_over(before: str, after: str) -> list[str]:
    """Hand jobs in all states over, and return what went wrong."""
    namespace = new_namespace(f"from-{before}")
    async with (
        Client(await load(), user_agent="side-by-side") as client,
        Observed.of(client, namespace, FOLLOWED) as seen,
    ):
        with _running(before, namespace):
            for name, (policy, _, _) in _JOBS.items():
                await seen.create(mpijob(name, run_policy=policy))
            await _play(seen, {name: steps for name, (_, steps, _) in _JOBS.items()})
            objects, conditions = _objects(seen), {name: _conditions(seen, name) for name in _JOBS}
        with _running(after, namespace):
            await _settled(seen)
            wrong = _changed(objects, _objects(seen))
            wrong += [
                f"{name} was {conditions[name]}, is {_conditions(seen, name)}"
                for name in _JOBS
                if _conditions(seen, name) != conditions[name]
            ]
            await _play(seen, {name: steps for name, (_, _, steps) in _JOBS.items()})
            gone = sorted(set(objects) - set(_objects(seen)))
            wrong += [f"{kind} {name} is gone" for kind, name, _ in gone]
            wrong += [f"{name} has not succeeded" for name in _JOBS if not _succeeded(seen, name)]
    return wrong


def _running(operator: str, namespace: str) -> AbstractContextManager[Any]:
    folder, flag = Path(os.environ["E2E_CLUSTER"]), f"--namespace={namespace}"
    if operator == "dlctl":
        return dlctl_process.running(folder, flag)
    return peer.running(folder, *peer.UNLIMITED, flag)


async def _play(seen: Observed, steps: Mapping[str, Sequence[Step]]) -> None:
    """Play the steps of each job, all jobs at once."""

    async def play(name: str) -> None:
        await seen.settled(name)
        for step in steps[name]:
            await step.do(seen, name)
            await seen.settled(name)

    async with asyncio.TaskGroup() as group:
        for name in steps:
            group.create_task(play(name))


async def _settled(seen: Observed) -> None:
    await _play(seen, dict.fromkeys(_JOBS, ()))


def _objects(seen: Observed) -> dict[tuple[str, str, str], Any]:
    """Return all objects of the jobs by kind, name and UID, with what must not change."""
    found = [obj for name in _JOBS for obj in seen.of_job(name)]
    return {
        (obj["kind"], obj["metadata"]["name"], obj["metadata"]["uid"]): _content(obj)
        for obj in found
        if obj["kind"] not in ("Event", "MPIJob")
    }


def _content(obj: JSON) -> Any:
    if obj["kind"] in ("ConfigMap", "Secret"):
        return obj["data"]
    status = obj.get("status", {})
    return obj["spec"].get("suspend", status.get("phase"))


def _changed(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> list[str]:
    return [
        f"{kind} {name} was {before.get(key)}, is {after.get(key)}"
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
        for kind, name, _ in [key]
    ]


def _conditions(seen: Observed, name: str) -> list[tuple[str, str, str]]:
    found = seen.objects["MPIJob", name].get("status", {}).get("conditions") or ()
    # dlctl alone says what a job waits for, whoever created it.
    return [(c["type"], c["status"], c["reason"]) for c in found if c["type"] != "Waiting"]


def _succeeded(seen: Observed, name: str) -> bool:
    return _SUCCEEDED in _conditions(seen, name)


def main() -> int:
    install(DLCTL.definition())
    found = {
        f"{before} to {after}": asyncio.run(handed_over(before, after))
        for before, after in (("mpi-operator", "dlctl"), ("dlctl", "mpi-operator"))
    }
    print(json.dumps(found, indent=1))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
