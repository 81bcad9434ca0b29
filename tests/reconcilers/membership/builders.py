"""States of elastic jobs: by default, a running job of two listed workers."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.job import LAUNCHER, WORKER, Job, Replica
from dlctl.api.meta import UID, ObjectKey
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.scalers import Scaler, ScalerPhase
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.membership import Membership, ScaleOperation
from dlctl.controller.background_tasks import TaskOutcome
from dlctl.dialects.et_operator.kinds import ELASTIC
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.planner import with_members
from dlctl.reconcilers.observe import Children, observe
from tests.builders import NOW, RUNNING, exited, make_pod
from tests.dialects.et_operator.manifests import read_job, read_scaler, scale_in, scale_out

JOB: Final = read_job()
LISTED: Final = Membership(members=(0, 1), hosts=(0, 1), observed_replicas=2, generation=7)


def ago(seconds: float) -> datetime.datetime:
    return NOW - datetime.timedelta(seconds=seconds)


def worker_pod(
    index: int,
    *,
    ready_s: float | None = 60.0,
    exit_code: int | None = None,
    terminating: bool = False,
    node: str = "node-a",
) -> Pod:
    """Return a worker's pod, ready since this many seconds (None: not ready) or exited."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": ago(ready_s or 0).isoformat()}
    deleted = {"deletionTimestamp": NOW.isoformat()} if terminating else {}
    replica = Replica(WORKER, index)
    pod = make_pod(
        JOB,
        replica,
        phase="Running" if exit_code is None else "Failed" if exit_code else "Succeeded",
        state=RUNNING if exit_code is None else exited(exit_code),
        metadata={"uid": f"uid-of-{replica}", **deleted},
        restart_policy="Never",
        conditions=[] if ready_s is None else [ready],
        podIP=f"10.0.0.{index + 1}",
    )
    spec = msgspec.structs.replace(pod.spec, node_name=node) if pod.spec else None
    return msgspec.structs.replace(pod, spec=spec)


def launcher_pod() -> Pod:
    return make_pod(JOB, Replica(LAUNCHER, 0), state=RUNNING, restart_policy="Never")


def make_state(
    membership: Membership = LISTED,
    *,
    pods: Mapping[int, Pod | None] | None = None,
    launched: bool = True,
    job: Job = JOB,
    phase: JobPhase = JobPhase.RUNNING,
    **fields: Any,
) -> MembershipState:
    """Return a state; workers that are present have ready pods unless ``pods`` says otherwise."""
    by_index = {index: worker_pod(index) for index in membership.present} | dict(pods or {})
    there = [pod for pod in by_index.values() if pod]
    job = attrs.evolve(job, status=attrs.evolve(job.status, phase=phase))
    whole = with_members(job, membership)
    children = Children((*there, launcher_pod()) if launched else there)
    values = {
        "elasticity": job.elasticity,
        "desired_replicas": membership.observed_replicas,
        "host_files": lambda hosts: {"hostfile": " ".join(map(str, hosts))},
        **fields,
    }
    observed = observe(whole, children, NOW)
    return MembershipState(whole, ELASTIC, observed, membership, now=NOW, **values)


def answered(
    state: MembershipState,
    plan: MembershipPlan,
    result: Any = None,
    *,
    error: str = "",
    tries: int = 1,
) -> MembershipState:
    """Return the state after every task of a plan has this outcome, in addition to earlier ones."""
    outcomes = {task: TaskOutcome(result, error, tries) for task in plan.exec_tasks}
    return attrs.evolve(state, outcomes={**outcomes, **state.outcomes})


def unchanged(state: MembershipState) -> MembershipPlan:
    return MembershipPlan.unchanged(state)


def removing(*workers: int, since_s: float = 0.0, **fields: Any) -> ScaleOperation:
    return ScaleOperation(False, workers, ago(since_s), **fields)


def adding(*workers: int, since_s: float = 0.0, **fields: Any) -> ScaleOperation:
    return ScaleOperation(True, workers, ago(since_s), **fields)


def scaler_in(name: str = "in", **spec: Any) -> Scaler:
    return _named(read_scaler(scale_in(**spec)), name)


def scaler_out(name: str = "out", **spec: Any) -> Scaler:
    return _named(read_scaler(scale_out(**spec)), name)


def by_scaler(scaler: Scaler) -> dict[str, Any]:
    """Return the fields of an operation started by a scaler."""
    return {"scaler": scaler.full_name, "uid": scaler.uid}


def reasons(notes: Sequence[Any]) -> list[str]:
    return [note.reason for note in notes]


def _named(scaler: Scaler, name: str) -> Scaler:
    key = ObjectKey(scaler.key.namespace, name)
    return attrs.evolve(scaler, key=key, uid=UID(f"uid-of-{name}"))


def phases(plan: MembershipPlan) -> dict[str, ScalerPhase]:
    """Return the new phase of each scaler that a plan updates, by its UID."""
    return {uid: update.status.phase for uid, update in plan.scaler_updates.items()}


def conditions(plan: MembershipPlan) -> list[str]:
    """Return the types of the conditions that a plan sets."""
    return [condition.type for condition in plan.conditions]
