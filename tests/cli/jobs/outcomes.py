"""Jobs in several situations, as ``dlctl why`` finds them."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod
from dlctl.cli.jobs.job_events import JobEvent
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from tests.builders import NOW, kind_of, make_pod, training_job
from tests.mpi_v2beta1 import mpi_job

BEGIN = NOW - datetime.timedelta(seconds=90)


def at(seconds: float) -> str:
    """Return a time after the creation of the job, as the API writes it."""
    return (BEGIN + datetime.timedelta(seconds=seconds)).isoformat()


def condition(type_: str, seconds: float, message: str) -> dict[str, Any]:
    time = at(seconds)
    return {
        "type": type_,
        "status": "True",
        "reason": f"PyTorchJob{type_}",
        "message": message,
        "lastTransitionTime": time,
        "lastUpdateTime": time,
    }


def snapshot(wire: Mapping[str, Any] | None = None, **status: Any) -> JobSnapshot:
    """Return a job of a master and two workers, created 90 s ago."""
    wire = wire or training_job("PyTorchJob", "sum", Master=1, Worker=2)
    metadata = {**wire["metadata"], "creationTimestamp": at(0)}
    kind = kind_of(wire["apiVersion"], wire["kind"])
    return JobSnapshot.of(kind, {**wire, "metadata": metadata, "status": status})


def pod(job: JobSnapshot, name: str, **fields: Any) -> Pod:
    assert isinstance(job.job, Job)
    type_, _, index = name.rpartition("-")
    made = make_pod(job.job, Replica(type_, int(index)), **fields)
    spec = msgspec.structs.replace(made.spec, node_name="node-a") if made.spec else None
    return made if fields.get("conditions") else msgspec.structs.replace(made, spec=spec)


def running(seconds: float) -> dict[str, Any]:
    return {"running": {"startedAt": at(seconds)}}


def ended(code: int, begin: float, end: float, **more: str) -> dict[str, Any]:
    times = {"startedAt": at(begin), "finishedAt": at(end)}
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", **times}}


def event(
    reason: str, seconds: float, message: str, *, pod: str = "", type_: str = "Normal"
) -> JobEvent:
    wire = {
        "metadata": {"name": f"{reason}.{seconds}"},
        "type": type_,
        "reason": reason,
        "message": message,
        "firstTimestamp": at(seconds),
        "lastTimestamp": at(seconds),
        "count": 1,
        "involvedObject": {"kind": "Pod" if pod else "PyTorchJob", "name": pod or "sum"},
    }
    return msgspec.convert(wire, JobEvent, strict=False)


@attrs.frozen
class Situation:
    """What ``dlctl why`` reads."""

    job: JobSnapshot
    pods: Sequence[Pod] = ()
    events: Sequence[JobEvent] = ()
    output: Sequence[str] = ()


CREATED = condition("Created", 0, "PyTorchJob sum is created.")
RUNNING = condition("Running", 2, "PyTorchJob sum is running.")


def failed() -> Situation:
    job = snapshot(
        conditions=[
            CREATED,
            {**RUNNING, "status": "False"},
            condition("Failed", 60, "PyTorchJob sum is failed because 1 Worker replica(s) failed."),
        ],
        replicaStatuses={"Master": {"active": 0}, "Worker": {"failed": 1}},
        startTime=at(0),
        completionTime=at(60),
        dlctl={
            "phase": "Done",
            "restarts": {
                "worker-0": {
                    "failures": 1,
                    "consecutiveEnds": 2,
                    "podUID": "old",
                    "reason": "Evicted",
                    "finishedAt": at(20),
                }
            },
            "failure": {
                "replica": "worker-1",
                "pod": "sum-worker-1",
                "reason": "Error",
                "message": "exit code 1 (general error)",
                "time": at(59),
                "exitCode": 1,
            },
        },
    )
    pods = (
        pod(job, "master-0", state=running(1)),
        pod(job, "worker-0", state=running(22)),
        pod(job, "worker-1", phase="Failed", state=ended(1, 2, 59)),
    )
    events = (
        event("SuccessfulCreatePod", 0, "Created pods: sum-master-0, sum-worker-0, sum-worker-1"),
        event("ExitedWithCode", 59, "Pod: ml.sum-worker-1 exited with code 1"),
    )
    return Situation(job, pods, events, ("Traceback", "KeyError: 'x'"))


def lost_gang() -> Situation:
    """A job with a verdict on its only attempt."""
    verdict = {
        "cause": "UserCode",
        "confidence": "Medium",
        "message": "ValueError: the loss is not finite",
        "time": at(59),
        "replica": "worker-1",
        "pod": "sum-worker-1",
        "node": "node-a",
        "rank": 2,
        "exitCode": 1,
        "collateral": ["master-0", "worker-0"],
        "collateralCount": 2,
    }
    attempt = {"number": 0, "startTime": at(1), "endTime": at(59), "worldSize": 3, **verdict}
    job = snapshot(
        conditions=[CREATED, condition("Failed", 60, "PyTorchJob sum is failed.")],
        startTime=at(0),
        completionTime=at(60),
        dlctl={"phase": "Done", "attempts": [attempt]},
    )
    lines = ("Traceback (most recent call last):", "ValueError: the loss is not finite")
    return Situation(job, output=lines)


def crash_loop() -> Situation:
    job = snapshot(conditions=[CREATED, RUNNING], startTime=at(0))
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}}
    pods = (
        pod(job, "master-0", state=running(1)),
        pod(job, "worker-0", state=running(2)),
        pod(job, "worker-1", state=waiting, last_state=ended(1, 40, 41)),
    )
    return Situation(job, pods, output=("no such file: train.py",))


def failing_init_container() -> Situation:
    job = snapshot(conditions=[CREATED, RUNNING], startTime=at(0))
    waiting = {"waiting": {"reason": "PodInitializing"}}
    back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}}
    init = {"name": "fetch", "restartCount": 2, "state": back_off, "lastState": ended(3, 40, 41)}
    pods = (
        pod(job, "master-0", state=running(1)),
        pod(job, "worker-0", state=running(2)),
        pod(job, "worker-1", phase="Pending", state=waiting, initContainerStatuses=[init]),
    )
    return Situation(job, pods, output=("cannot reach the bucket",))


def unschedulable() -> Situation:
    job = snapshot(conditions=[CREATED], startTime=at(0))
    no_node = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    }
    pods = tuple(
        pod(job, name, phase="Pending", conditions=[no_node])
        for name in ("master-0", "worker-0", "worker-1")
    )
    return Situation(job, pods)


def missing_secret() -> Situation:
    job = snapshot(conditions=[CREATED], startTime=at(0))
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    pods = (
        pod(job, "master-0", phase="Pending", state=waiting),
        pod(job, "worker-0", state=running(3)),
    )
    mount = 'MountVolume.SetUp failed for volume "data": secret "s3" not found'
    events = (event("FailedMount", 4, mount, pod="sum-master-0", type_="Warning"),)
    return Situation(job, pods, events)


def name_taken() -> Situation:
    job = snapshot(conditions=[CREATED], startTime=at(0))
    message = 'pods "sum-worker-0" already exists, and belongs to tfjob sum'
    return Situation(job, (), (event("FailedCreatePod", 2, message, type_="Warning"),))


def suspended() -> Situation:
    job = training_job("PyTorchJob", "sum", Master=1, Worker=2)
    job["spec"]["runPolicy"] = {"suspend": True}
    said = condition("Suspended", 1, "PyTorchJob sum is suspended.")
    return Situation(snapshot(job, conditions=[CREATED, said]))


def unclaimed() -> Situation:
    return Situation(snapshot())


def unknown_version() -> Situation:
    job = mpi_job(2, name="sum")
    job["metadata"]["annotations"] = {"dlctl.dev/mpijob-version": "v9"}
    return Situation(snapshot(job))


def launcher_waits() -> Situation:
    """A launcher that is the pod of a batch/v1 Job was restarted in it; a worker is missing."""
    record = {"consecutiveEnds": 1, "exitCode": 1, "reason": "Error", "finishedAt": at(1)}
    job = snapshot(
        mpi_job(2, name="sum"),
        conditions=[CREATED],
        startTime=at(0),
        dlctl={"phase": "Creating", "version": "v2beta1", "restarts": {"launcher-0": record}},
    )
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sum-launcher", "uid": "of-the-job"}
    meta = {"name": "sum-launcher-x7k2p", "ownerReferences": [{**owner, "controller": True}]}
    launcher = pod(job, "launcher-0", state=running(2), last_state=ended(1, 0, 1), metadata=meta)
    of_job = {"ownerReferences": [{**owner, "uid": job.uid, "controller": True}]}
    worker = pod(job, "worker-0", state=running(2), metadata=of_job)
    return Situation(job, (launcher, worker))


def launcher_waits_for_workers() -> Situation:
    wire = mpi_job(2, name="sum", launcherCreationPolicy="WaitForWorkersReady")
    job = snapshot(wire, conditions=[CREATED], startTime=at(0))
    of_job = {"ownerReferences": [{"kind": "MPIJob", "uid": job.uid, "controller": True}]}
    ready = [{"type": "Ready", "status": "True"}]
    return Situation(
        job,
        (
            pod(job, "worker-0", state=running(2), metadata=of_job),
            pod(job, "worker-1", state=running(2), metadata=of_job, conditions=ready),
        ),
    )


def invalid() -> Situation:
    return Situation(
        snapshot(
            training_job("PyTorchJob", "sum", Master=2),
            conditions=[condition("Failed", 0, "PyTorchJob sum is invalid.")],
            dlctl={"phase": "Failed"},
        )
    )


def succeeded() -> Situation:
    job = snapshot(
        conditions=[
            CREATED,
            {**RUNNING, "status": "False"},
            condition("Succeeded", 30, "PyTorchJob sum is successfully completed."),
        ],
        startTime=at(0),
        completionTime=at(30),
        dlctl={"phase": "Done"},
    )
    return Situation(job)


def parameter_server_left() -> Situation:
    job = snapshot(
        training_job("TFJob", "sum", PS=1, Worker=1),
        conditions=[CREATED, condition("Succeeded", 30, "TFJob ml/sum successfully completed.")],
        startTime=at(0),
        completionTime=at(30),
        dlctl={"phase": "Done"},
    )
    worker = pod(job, "worker-0", phase="Succeeded", state=ended(0, 2, 30))
    return Situation(job, (pod(job, "ps-0", state=running(2)), worker))


SITUATIONS = {
    made.__name__: made
    for made in (
        *(failed, lost_gang, crash_loop, failing_init_container, unschedulable),
        *(missing_secret, name_taken),
        *(suspended, unclaimed, invalid, succeeded, parameter_server_left),
        *(unknown_version, launcher_waits, launcher_waits_for_workers),
    )
}
