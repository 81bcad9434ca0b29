"""One object's content through all pure code: decode, read, plan, render, write.

Objects may be rejected by :class:`InvalidJobError` or as malformed; any other exception here would
also occur in a controller.
"""

import asyncio
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from dlctl.api.job import WORKER, Job
from dlctl.api.meta import Object
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.scalers import ScalerObject
from dlctl.cli.manifests.job_renderer import with_all_workers_listed
from dlctl.dialects import lenient_reader
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.kinds import ELASTIC
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.errors import InvalidJobError
from dlctl.frameworks.horovod.job import TrainingJob
from dlctl.informers.watch_events import EventDecoder, ObjectEvent
from dlctl.kube.decoding import decode_page
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.content_errors import ContentError
from dlctl.reconcilers.job.decoding import DecodedJob, decode_with_job
from dlctl.reconcilers.large_jobs.threads import MIN_COST_FOR_THREAD, reading_cost
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.planner import (
    plan_membership,
    with_members,
    with_planned_members,
)
from dlctl.reconcilers.membership.scaler_index import index_by_job
from dlctl.reconcilers.membership.selection import initial_membership
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from dlctl.reconcilers.status import invalid_status
from tests.builders import NOW, make_job, manifest, template
from tests.fuzz.limits import LARGE_MAX_TIME_S
from tests.fuzz.objects import CrdVersion

O = TypeVar("O", bound=Object)  # noqa: E741 - as T is a type.
# Pods are rendered in slices, each in its own time.
SLICE: Final = 8
# Planned in a thread, beside the event loop.
_LARGE: Final = ", a large one"
_NOTHING: Final = Children((), ())
_LOOP: Final = asyncio.Runner()
# As the controller has one; here without the loop, whose tasks take memory of their own.
_READER: Final = ThreadPoolExecutor(max_workers=1)


def run_pipeline(form: CrdVersion, wire: bytes) -> str:
    """Process an object from a watch to its plan, and return the outcome in a word."""
    obj = _decode_event(wire, _projection(form))
    if obj is None:
        return "malformed"
    if isinstance(obj, ScalerObject):
        return _plan_scaler(form, obj)
    assert isinstance(obj, JobObject)
    return _read_and_plan(form, obj)


def is_large(outcome: str) -> bool:
    """Return whether an object with this outcome is planned beside the event loop."""
    return outcome.endswith(_LARGE)


def is_listed(form: CrdVersion, wire: bytes) -> bool:
    """Return whether a list shows an object, rather than setting it apart.

    :raises AssertionError: if a watch does otherwise.
    """
    as_ = _projection(form)
    page = _LOOP.run(decode_page(b'{"items":[' + wire + b"]}", as_))
    watched = _decode_event(wire, as_)
    assert (watched is not None) is bool(page.items), f"listed {page.items}, watched {watched}"
    return bool(page.items)


def _projection(form: CrdVersion) -> type[JobObject] | type[ScalerObject]:
    return ScalerObject if form.is_scaler else JobObject


def _decode_event(wire: bytes, as_: type[O]) -> O | None:
    event = EventDecoder(as_).decode(b'{"type":"ADDED","object":' + wire + b"}")
    return event.object if isinstance(event, ObjectEvent) else None


def _read_and_plan(form: CrdVersion, obj: JobObject) -> str:
    decoded, read = _decode(form, obj)
    if decoded.dialect.managed_by_external_controller(decoded):
        return "elsewhere"
    if isinstance(read, ContentError):
        raise read
    if isinstance(read.error, ContentError):
        # The controller gets over it, but whatever it is, a reader should have refused it by name.
        raise read.error
    if read.job is None:
        job = lenient_reader.job_of_status(read.obj, read.status)
        failing = invalid_status.invalid_plan(job, str(read.error), NOW)
        wire = decoded.dialect.write_status(failing.status)
        msgspec.json.encode((wire, [note.message for note in failing.notes]))
        return "invalid"
    outcome = _plan(read.job, read.obj.dialect)
    return outcome + _LARGE if read.job.total_replicas >= MIN_COST_FOR_THREAD else outcome


def _decode(form: CrdVersion, obj: JobObject) -> tuple[DecodedObject, DecodedJob | ContentError]:
    """Decode a job; one with a large spec in a thread, which has a bound of its own."""
    decode = partial(decode_with_job, form.kind, obj)
    if reading_cost(obj.readable_spec) < MIN_COST_FOR_THREAD:
        return decode()

    def timed() -> tuple[DecodedObject, DecodedJob | ContentError]:
        started = time.thread_time()
        decoded = decode()
        taken_s = time.thread_time() - started
        assert taken_s <= LARGE_MAX_TIME_S, f"{taken_s:.1f} s"
        return decoded

    return _READER.submit(timed).result()


def _plan(job: Job, dialect: Dialect) -> str:
    draft = _draft(job) if job.elasticity and not job.is_partial else None
    drafted = with_planned_members(job, draft) if draft else job
    renderer = Renderer(drafted, dialect)
    observed = observe(drafted, _NOTHING, NOW)
    try:
        desired = Desired() if job.is_partial else renderer.desired(observed)
    except InvalidJobError:
        # Such as amounts that cannot be summed up for its gang.
        return "unrenderable"
    planned = plan_job(drafted, observed, desired, NOW, PlanSettings())
    msgspec.json.encode(
        (dialect.write_status(planned.status), [note.message for note in planned.notes])
    )
    if job.is_partial:
        return "unreadable and goes on"
    try:
        _render(Renderer(with_all_workers_listed(job), dialect))
    except InvalidJobError:
        return "unrenderable"
    return "planned"


def _render(renderer: Renderer) -> None:
    """Render everything outside slices, and one slice."""
    for dependent in (*renderer.dependents(()), *renderer.framework.secrets()):
        msgspec.json.encode(renderer.dependent(dependent))
    for replica in itertools.islice(renderer.replicas_with_service(), SLICE):
        msgspec.json.encode(renderer.service(replica))
    for replica in itertools.islice(renderer.job.replicas, SLICE):
        msgspec.json.encode(renderer.pod(replica))


def _plan_scaler(form: CrdVersion, obj: ScalerObject) -> str:
    resource = SCALE_INS if form.name == SCALE_INS.kind else SCALE_OUTS
    read = partial(scalers.read, resource=resource)
    list(index_by_job(read, obj))
    scaler = read(obj)
    draft = _draft(_TRAINING_JOB, scaler)
    for change in draft.scaler_updates.values():
        msgspec.json.encode(scalers.write_status(change.status, resource))
    return "invalid" if scaler.invalid_reason else "planned"


def _draft(job: Job, *asked: Any) -> MembershipPlan:
    """Return the membership plan of a job at its start, or for a scale request."""
    assert job.elasticity is not None
    count = job.replica_count(WORKER)
    membership = job.status.membership or initial_membership(count)
    manned = with_members(job, membership)
    observed = observe(manned, _NOTHING, NOW)
    found = [one for one in asked if not one.status.phase.finished]
    slots = TrainingJob(job).slots
    view = MembershipState(
        manned, ELASTIC, observed, membership, job.elasticity, NOW, count, slots, scalers=found
    )
    return plan_membership(view)


def _training_job() -> Job:
    each = {"replicas": 2, "template": template("worker")}
    launcher = {"replicas": 1, "template": template("launcher")}
    spec = {"etReplicaSpecs": {"launcher": launcher, "worker": each}}
    wire = manifest("kai.alibabacloud.com/v1alpha1", "TrainingJob", spec, name="a")
    return make_job(wire)


_TRAINING_JOB: Final = _training_job()
