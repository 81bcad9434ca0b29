"""A PyTorchJob and its pods over time, for tests of attempts: how they end, and what follows."""

import datetime
from typing import Any

import attrs

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.objects.pods import Pod
from dlctl.api.status.verdict import Attempt, Cause
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, training_job

MASTER, ONE, TWO = Replica("master", 0), Replica("worker", 0), Replica("worker", 1)
SETTINGS = PlanSettings()


def at(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def torch_job(policy: str = "ExitCode", **run_policy: Any) -> Job:
    manifest = training_job("PyTorchJob", Master=1, Worker=2)
    manifest["spec"]["runPolicy"] = run_policy
    for spec in manifest["spec"]["pytorchReplicaSpecs"].values():
        spec["restartPolicy"] = policy
    return make_job(manifest)


def pods(job: Job, uid: str = "a", **states: JSON) -> list[Pod]:
    """Return running pods of all replicas but for those whose state is given by type and index."""
    return [
        make_pod(
            job,
            replica,
            **{
                "state": RUNNING,
                "metadata": {"uid": f"{uid}-{replica}"},
                "restart_policy": "Never",
                **states.get(str(replica).replace("-", ""), {}),
            },
        )
        for replica in job.replicas
    ]


def failed(code: int, ended: float, uid: str = "a", **more: Any) -> JSON:
    """Return a failed pod that ran from NOW; a later run needs ``started``."""
    started = more.pop("started", 0.0)
    state = exited(code, reason=more.pop("reason", ""), at=at(ended))
    state["terminated"]["startedAt"] = at(started).isoformat()
    return {"phase": "Failed", "state": state, "metadata": {"uid": uid}, **more}


def planned(job: Job, found: list[Pod], seconds: float) -> Plan:
    now = at(seconds)
    return plan_job(job, observe(job, Children(found), now), Desired(), now, SETTINGS)


def after(job: Job, found: list[Pod], seconds: float) -> Job:
    return attrs.evolve(job, status=planned(job, found, seconds).status)


def running(job: Job) -> Job:
    return after(job, pods(job), 0)


def attempts(job: Job) -> tuple[Attempt, ...]:
    return job.status.attempts


def causes(job: Job) -> list[tuple[Cause, str] | None]:
    verdicts = (one.verdict for one in attempts(job))
    return [(verdict.cause, verdict.replica) if verdict else None for verdict in verdicts]
