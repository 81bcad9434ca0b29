"""Random jobs of Kubeflow's kinds, each replica type with a restart policy of its own.

The replica that ends the job is the last to end, so a case has a single outcome.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from tests.builders import make_job, training_job
from tests.convergence.job_case import JobCase
from tests.support.outcomes import (
    DONE,
    KEEPS_RUNNING,
    OOM_KILLED,
    Deleted,
    Drained,
    Evicted,
    Exit,
    Outcome,
)

_REMOVED: Final = (Deleted(), Drained())
# Outcomes that a replica survives, and those that it does not, by restart policy. With restarts in
# place, every failure can still be followed by a success.
_FAILURE_OUTCOMES: Final[Mapping[str, Sequence[Outcome]]] = {
    "Always": (Exit(1), Exit(137), OOM_KILLED, DONE, Evicted(), *_REMOVED),
    "OnFailure": (Exit(1), Exit(137), OOM_KILLED, Evicted(), *_REMOVED),
    "ExitCode": (Exit(130), Exit(137), Exit(138), Exit(143), Exit(200), Evicted(), *_REMOVED),
    "Never": _REMOVED,
}
_PERMANENT: Final[Mapping[str, Sequence[Outcome]]] = {
    "ExitCode": (Exit(1), Exit(3), Exit(127), Exit(139), OOM_KILLED),
    "Never": (Exit(1), Exit(137), Exit(143), OOM_KILLED, Evicted()),
}
_KINDS: Final = ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "MPIJob")
_POLICIES: Final = tuple(_FAILURE_OUTCOMES)
_ENDING: Final = tuple(policy for policy in _POLICIES if policy != "Always")
_CLEANING: Final = ("All", "Running", "None")


@attrs.frozen
class JobPlan:
    """A job, the restart policy of each replica type, and the replicas that decide it."""

    manifest: JSON
    job: Job
    policies: Mapping[str, str]

    def policy(self, replica: Replica) -> str:
        return self.policies[replica.type]

    def is_needed(self, replica: Replica) -> bool:
        """Return whether the job fails with a replica."""
        success_policy = self.job.success_policy
        must_succeed = (
            replica in success_policy.success_replicas and not success_policy.any_succeeds
        )
        return must_succeed or replica.type not in success_policy.tolerated_types


def training_case(dice: random.Random, name: str) -> JobCase:
    """Return a job and the outcomes of its replicas."""
    plan = _job_plan(dice, name)
    failing = [
        replica
        for replica in plan.job.replicas
        if plan.is_needed(replica) and plan.policy(replica) in _PERMANENT
    ]
    fails = bool(failing) and dice.random() < 0.4
    last_replica = dice.choice(failing if fails else plan.job.success_policy.success_replicas)
    outcomes = {
        str(replica): (
            *_failures(dice, plan.policy(replica)),
            _final_outcome(dice, plan, replica, last_replica, fails=fails),
        )
        for replica in plan.job.replicas
    }
    return JobCase(plan.manifest, outcomes, str(last_replica), plan.policies)


def _job_plan(dice: random.Random, name: str) -> JobPlan:
    manifest, field = _manifest(dice, name)
    spec = manifest["spec"]
    spec["runPolicy"] = {"cleanPodPolicy": dice.choice(_CLEANING)}
    if dice.random() < 0.2:
        # More failures than any of the outcomes here adds up to.
        spec["runPolicy"]["backoffLimit"] = 1000
    success_types = {replica.type for replica in make_job(manifest).success_policy.success_replicas}
    policies = {}
    for type_, entry in spec[field].items():
        # A pod that is always restarted never succeeds.
        policy = dice.choice(_ENDING if type_.lower() in success_types else _POLICIES)
        entry["restartPolicy"] = policies[type_.lower()] = policy
    return JobPlan(manifest, make_job(manifest), policies)


def _manifest(dice: random.Random, name: str) -> tuple[JSON, str]:
    servers, workers = dice.randint(0, 2), dice.randint(1, 3)
    kind = dice.choice(_KINDS)
    counts: dict[str, int] = {"Worker": workers}
    more: JSON = {}
    match kind:
        case "TFJob":
            counts |= {"PS": servers} if servers else {}
            counts |= dice.choice(({}, {"Chief": 1}, {"Master": 1}, {"Chief": 1, "Evaluator": 1}))
            more = dice.choice(({}, {"successPolicy": "AllWorkers"}, {"enableDynamicWorker": True}))
        case "PyTorchJob":
            counts |= dice.choice(({}, {"Master": 1}))
            more = dice.choice(({}, {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}}))
        case "PaddleJob":
            counts |= dice.choice(({}, {"Master": 1}))
        case "XGBoostJob":
            counts["Master"] = 1
        case "MPIJob":
            counts["Launcher"] = 1
        case "MXJob":
            tuning = {"Tuner": 1, "TunerTracker": 1, "TunerServer": servers + 1}
            tunes = dice.random() < 0.3
            counts = tuning if tunes else {**counts, "Scheduler": 1, "Server": servers + 1}
            more = {"jobMode": "MXTune" if tunes else "MXTrain"}
        case _:
            pass
    manifest = training_job(kind, name, **counts)
    field = next(iter(manifest["spec"]))
    manifest["spec"] |= more
    return manifest, field


def _failures(dice: random.Random, policy: str) -> list[Outcome]:
    return [dice.choice(_FAILURE_OUTCOMES[policy]) for _ in range(dice.choice((0, 0, 0, 1, 2)))]


def _final_outcome(
    dice: random.Random, plan: JobPlan, replica: Replica, last_replica: Replica, *, fails: bool
) -> Outcome:
    success_policy, policy = plan.job.success_policy, plan.policy(replica)
    if replica == last_replica:
        return dice.choice(_PERMANENT[policy]) if fails else DONE
    if policy == "Always":
        return KEEPS_RUNNING
    if replica in success_policy.success_replicas:
        # One or all of these must not succeed before the last replica.
        together = len(success_policy.success_replicas) > 1 and not success_policy.any_succeeds
        return (
            DONE
            if together and (not fails or last_replica in success_policy.success_replicas)
            else KEEPS_RUNNING
        )
    may_fail = not plan.is_needed(replica) and policy in _PERMANENT
    return dice.choice((DONE, KEEPS_RUNNING, *(_PERMANENT[policy] if may_fail else ())))
