"""What an operator makes of a case, after its creation and after each step."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.kube.errors import ApiError
from e2e.mpi_operator import normal_form
from e2e.mpi_operator.case import Case
from e2e.mpi_operator.observed import Observed

# With more, mpi-operator takes seconds to look: each event of a job doubles its next delay.
_AT_ONCE: Final = 20
_NOTICED_S: Final = 10.0
_COUNTED_S: Final = 12.0
# By step, what there is.
Record = Mapping[str, Any]


async def record(seen: Observed, cases: Sequence[Case]) -> dict[str, Record]:
    """Play the cases, some at a time; return the record of each, by its name."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def play(case: Case) -> Record:
        async with slots:
            return await _record(seen, case)

    async with asyncio.TaskGroup() as group:
        tasks = {case.name: group.create_task(play(case)) for case in cases}
    return {name: task.result() for name, task in tasks.items()}


async def _record(seen: Observed, case: Case) -> Record:
    try:
        for obj in (*case.before, case.job):
            await seen.create(obj)
    except ApiError as error:
        return {"refused": str(error).replace(seen.namespace, "NAMESPACE")}
    await seen.until(lambda: _is_noticed(seen, case), within_s=_NOTICED_S)
    await seen.settled(case.name)
    records: dict[str, Any] = {"created": _now(seen, case)}
    for number, step in enumerate(case.steps, start=1):
        name = f"{number} {step.name}"
        try:
            await step.do(seen, case.name)
        except ApiError as error:
            records[name] = {"refused": str(error).replace(seen.namespace, "NAMESPACE")}
            break
        await seen.settled(case.name)
        await seen.until(lambda: _is_counted(seen, case), within_s=_COUNTED_S)
        records[name] = _now(seen, case)
    return records


def _is_noticed(seen: Observed, case: Case) -> bool:
    """Return whether the operator has done anything about a new job."""
    return any(obj["kind"] == "Event" or "status" in obj for obj in seen.of_job(case.name))


def _is_counted(seen: Observed, case: Case) -> bool:
    """Return whether the status shows how many pods run; dlctl may take some seconds."""
    status = seen.objects.get(("MPIJob", case.name), {}).get("status") or {}
    counts = status.get("replicaStatuses") or {}
    return "completionTime" in status or all(
        counts.get(type_, {}).get("active", 0) == len(_running(seen, case, type_))
        for type_ in ("Launcher", "Worker")
    )


def _running(seen: Observed, case: Case, type_: str) -> list[JSON]:
    pods = seen.pods(case.name, type_.lower())
    return [pod for pod in pods if pod["status"]["phase"] == "Running"]


def _now(seen: Observed, case: Case) -> JSON:
    found = seen.of_job(case.name)
    objects = {}
    for obj in found:
        if obj["kind"] != "Event":
            name = normal_form.name_of(obj, case.name)
            while name in objects:
                name += "'"
            objects[name] = normal_form.normalized(obj, seen.namespace)
    told = [obj for obj in found if obj["kind"] == "Event"]
    return {"objects": objects, "events": normal_form.events(told, seen.namespace)}
