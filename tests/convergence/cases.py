"""Random jobs, faults and controller kills, all from one seed.

A case defines what happens, not the expected outcome. Equal seeds yield equal cases.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from dlctl.api.job import Replica
from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from tests.builders import bare_job, make_job, mxjob
from tests.convergence.job_case import JobCase
from tests.convergence.training_jobs import training_case
from tests.support.outcomes import DONE, KEEPS_RUNNING, OOM_KILLED, Deleted, Evicted, Exit, Outcome
from tests.support.throttling import too_many_requests

_RETRYABLE: Final = (Exit(130), Exit(137), Exit(138), Exit(143), Evicted(), Deleted())
_PERMANENT: Final = (Exit(1), Exit(2), Exit(3), Exit(127), Exit(139), OOM_KILLED)
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")
_RESOURCES: Final = ("", "", "pods", "services", "events")
_JOB: Final = Resource("kubeflow.org", "v1alpha1", "mxjobs", "MXJob")


@attrs.frozen
class Kill:
    """A controller kill, this many revisions and loop iterations after its start."""

    revisions: int
    turns: int
    down_s: float


@attrs.frozen
class Case:
    """The events of one run; without faults and kills it is the reference run."""

    seed: int
    jobs: Sequence[JobCase]
    # With the seconds from the start at which they are armed.
    faults: Sequence[tuple[float, Fault]]
    kills: Sequence[Kill]

    def undisturbed(self) -> "Case":
        return attrs.evolve(self, faults=(), kills=())


def case_of(seed: int) -> Case:
    dice = random.Random(seed)
    jobs = [
        dice.choice((_job, training_case, training_case))(dice, f"job-{number}")
        for number in range(dice.randint(1, 3))
    ]
    faults = sorted(
        (
            (dice.choice((0.0, dice.uniform(0, 5))), _fault(dice))
            for _ in range(dice.randint(0, 20))
        ),
        key=lambda timed: timed[0],
    )
    kills = [
        Kill(dice.randint(0, 40), dice.randint(0, 30), dice.choice((0.0, dice.uniform(0, 3))))
        for _ in range(dice.randint(0, 3))
    ]
    return Case(seed, jobs, faults, kills)


def _job(dice: random.Random, name: str) -> JobCase:
    policy = dice.choice(("Never", "OnFailure"))
    manifest = _manifest(dice, name)
    spec = manifest["spec"]
    for entry in spec if isinstance(spec, list) else spec["replicaSpecs"]:
        entry["template"]["spec"]["restartPolicy"] = policy
    job = make_job(manifest)
    replicas = list(job.replicas)
    fails = dice.random() < 0.4
    last_replica = dice.choice(replicas) if fails else job.success_policy.success_replicas[0]
    outcomes = {}
    for replica in replicas:
        if replica == last_replica:
            last: Outcome = dice.choice(_PERMANENT) if fails else DONE
        else:
            last = _final_outcome(dice, replica, job.success_policy.success_replicas[0])
        outcomes[str(replica)] = (*_failures(dice), last)
    return JobCase(manifest, outcomes, str(last_replica), {r.type: policy for r in replicas})


def _manifest(dice: random.Random, name: str) -> JSON:
    servers, workers = dice.randint(0, 2), dice.randint(1, 3)
    match dice.choice(("kubeflow.org", "fioravanzo.org", "bare", "TFJob", "local")):
        case "bare":
            counts = {"scheduler": 1, "server": servers, "worker": workers}
            return bare_job("MXJob", name, **counts)
        case "TFJob":
            return bare_job("TFJob", name, ps=servers, worker=workers)
        case "local":
            chief = {"chief": {"replicaName": "WORKER", "replicaIndex": 0}}
            spec: JSON = {"jobMode": "local", "terminationPolicy": chief}
            return mxjob(name=name, workers=1, cleanupPodPolicy=_policy(dice), **spec)
        case group:
            counts = {"servers": servers, "workers": workers}
            return mxjob(group=group, name=name, cleanupPodPolicy=_policy(dice), **counts)


def _policy(dice: random.Random) -> str:
    return dice.choice(("All", "Running", "None"))


def _failures(dice: random.Random) -> list[Outcome]:
    return [dice.choice(_RETRYABLE) for _ in range(dice.choice((0, 0, 0, 1, 2)))]


def _final_outcome(dice: random.Random, replica: Replica, chief: Replica) -> Outcome:
    if replica == chief:
        # Its success would end the job before the last replica could.
        return KEEPS_RUNNING
    return dice.choice((DONE, KEEPS_RUNNING))


def _fault(dice: random.Random) -> Fault:
    resource = dice.choice(_RESOURCES)
    verb = dice.choice(_VERBS)
    times = dice.randint(1, 3)
    where: JSON = {"user_agent": "dlctl", "verb": verb, "resource": resource, "times": times}
    if verb == "watch":
        return Fault(**where, **dice.choice(list(of_watches(dice))))
    if verb == "list":
        return Fault(**where, **dice.choice(list(of_lists(dice))))
    return Fault(**where, **dice.choice(list(of_requests(dice))))


def of_requests(dice: random.Random) -> Iterator[JSON]:
    yield {"status": status.conflict(_JOB, "job")}
    yield {"status": too_many_requests("too many", dice.randint(1, 3))}
    yield {"status": status.internal_error("injected fault")}
    yield {"status": StatusError(503, "ServiceUnavailable", "not now")}
    yield {"reset": "before"}
    yield {"reset": "after"}
    # Done, but not confirmed: by etcd, by a proxy that gives up, and in a broken response.
    yield {"answer": (500, b'{"kind":"Status","code":500,"message":"etcdserver: timed out"}')}
    yield {"answer": (504, b"<html>gateway timeout</html>")}
    yield {"answer": (200, b'{"kind":"Po')}
    yield {"answer": (200, b'{"error":"please log in"}')}
    yield {"delay_s": dice.uniform(0.01, 3)}


def of_lists(dice: random.Random) -> Iterator[JSON]:
    yield {"status": status.expired("too old")}
    yield {"stale_by": dice.randint(1, 30)}
    yield from of_requests(dice)


def of_watches(dice: random.Random) -> Iterator[JSON]:
    yield {"status": status.expired("too old")}
    yield {"status": status.expired("too old"), "in_stream": True}
    yield {"cut_after": dice.randint(0, 12)}
    yield {"cut_after": dice.randint(0, 12)}
    yield {"silent": True}
    yield {"lag_s": dice.uniform(0.01, 2)}
    yield from of_requests(dice)
