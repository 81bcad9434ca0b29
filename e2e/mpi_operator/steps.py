"""What can happen to a job: its pods, which run nowhere, and what its user does.

A pod is nothing but its status here: no node has it, so each case decides what becomes of it.
"""

import datetime
from collections.abc import Iterable
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, CONFIG_MAPS, PODS, SECRETS, SERVICES, Resource
from e2e.mpi_operator.case import Step
from e2e.mpi_operator.observed import MPIJOBS, Observed

_LAUNCHER: Final = "launcher"
_WORKER: Final = "worker"
_BY_KIND: Final = {one.kind: one for one in (BATCH_JOBS, CONFIG_MAPS, PODS, SECRETS, SERVICES)}


def workers_run() -> Step:
    async def do(seen: Observed, job: str) -> None:
        await _to_phase(seen, _pending(seen.pods(job, _WORKER)), "Running")

    return Step("workers run", do)


def launcher_runs(*, again: bool = False) -> Step:
    """Wait for a pod of the launcher, as after the back-off of its Job, and let it run."""

    async def do(seen: Observed, job: str) -> None:
        await seen.until(lambda: bool(_pending(seen.pods(job, _LAUNCHER))))
        await _to_phase(seen, _pending(seen.pods(job, _LAUNCHER)), "Running")

    return Step("launcher runs again" if again else "launcher runs", do)


def launcher_succeeds() -> Step:
    async def do(seen: Observed, job: str) -> None:
        await _to_phase(seen, _unfinished(seen.pods(job, _LAUNCHER)), "Succeeded")
        await seen.until(lambda: _ended(seen, job), within_s=10)

    return Step("launcher succeeds", do)


def launcher_fails(reason: str = "", message: str = "", code: int = 1) -> Step:
    async def do(seen: Observed, job: str) -> None:
        pods = _unfinished(seen.pods(job, _LAUNCHER))
        await _to_phase(seen, pods, "Failed", reason=reason, message=message, code=code)

    return Step("launcher fails", do)


def worker_ends(index: int, phase: str, reason: str = "", message: str = "") -> Step:
    async def do(seen: Observed, job: str) -> None:
        pods = [p for p in seen.pods(job, _WORKER) if _name(p) == f"{job}-worker-{index}"]
        await _to_phase(seen, pods, phase, reason=reason, message=message)

    return Step(f"worker {index} {reason or phase}", do)


def suspends(*, suspend: bool = True, **spec: JSON) -> Step:
    async def do(seen: Observed, job: str) -> None:
        body = {"spec": {"runPolicy": {"suspend": suspend}, **spec}}
        await seen.patch(MPIJOBS, job, body)

    return Step("suspended" if suspend else "resumed", do)


def resumes(**spec: JSON) -> Step:
    return suspends(suspend=False, **spec)


def edits(what: str, resource: Resource = MPIJOBS, suffix: str = "", **fields: object) -> Step:
    """Patch the job, or an object of its whose name has a suffix."""

    async def do(seen: Observed, job: str) -> None:
        await seen.patch(resource, job + suffix, fields)

    return Step(what, do)


def scales(count: int) -> Step:
    spec = {"mpiReplicaSpecs": {"Worker": {"replicas": count}}}
    return edits(f"scaled to {count}", spec=spec)


def deletes(kind: str, suffix: str = "") -> Step:
    async def do(seen: Observed, job: str) -> None:
        await seen.delete(_BY_KIND[kind], job + suffix)

    return Step(f"{kind} deleted", do)


def until_ended(within_s: float = 30.0) -> Step:
    async def do(seen: Observed, job: str) -> None:
        await seen.until(lambda: _ended(seen, job), within_s)

    return Step("ended", do)


def _ended(seen: Observed, job: str) -> bool:
    found = seen.objects.get(("MPIJob", job), {})
    conditions = found.get("status", {}).get("conditions") or ()
    return any(c["type"] in ("Succeeded", "Failed") and c["status"] == "True" for c in conditions)


def _pending(pods: Iterable[JSON]) -> list[JSON]:
    return [pod for pod in pods if pod["status"]["phase"] == "Pending"]


def _unfinished(pods: Iterable[JSON]) -> list[JSON]:
    return [pod for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]


def _name(pod: JSON) -> str:
    name: str = pod["metadata"]["name"]
    return name


async def _to_phase(
    seen: Observed,
    pods: Iterable[JSON],
    phase: str,
    *,
    reason: str = "",
    message: str = "",
    code: int | None = None,
) -> None:
    for pod in pods:
        status = _status(pod, phase, 0 if phase == "Succeeded" else code or 1)
        status |= {"reason": reason} if reason else {}
        status |= {"message": message} if message else {}
        await seen.patch(PODS, _name(pod), {"status": status}, "status")


def _status(pod: JSON, phase: str, code: int) -> JSON:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    runs = phase == "Running"
    reason = "Error" if code else "Completed"
    ended = {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}
    state = {"running": {"startedAt": now}} if runs else {"terminated": ended}
    ready = {"status": "True" if runs else "False", "lastTransitionTime": now}
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": runs,
            "restartCount": 0,
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]
    return {
        "phase": phase,
        "startTime": pod["status"].get("startTime", now),
        "conditions": [{"type": "Ready", **ready}, {"type": "ContainersReady", **ready}],
        "containerStatuses": containers,
    }
