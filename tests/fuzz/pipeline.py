"""The way of one object's content through all that is pure: decode, read, decide, render, write.

What may be refused is refused by :class:`InvalidJobError`, or by what decoding sets apart; whatever
else is raised here would have been raised in a controller.
"""

import asyncio
import itertools
from typing import Any, Final, TypeVar

import msgspec

from dlctl.api.elastic import SCALE_INS, SCALE_OUTS, WORKER, ScalerObject
from dlctl.api.job import Job, JobObject
from dlctl.api.meta import Object
from dlctl.cli.render import at_start
from dlctl.dialects.elastic import scalers
from dlctl.dialects.kinds import Kind
from dlctl.errors import InvalidJobError
from dlctl.frameworks.elastic.job import TrainingJob
from dlctl.informers.watchevents import Changed, EventDecoder
from dlctl.kube.decoding import decode_page
from dlctl.reconcilers import slices, status
from dlctl.reconcilers.children import Renderer
from dlctl.reconcilers.content import ContentError
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.elastic import by_job
from dlctl.reconcilers.elastic.roster import initial
from dlctl.reconcilers.elastic.step import staffed, step, with_draft
from dlctl.reconcilers.elastic.view import View
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Desired, Policy, plan
from dlctl.reconcilers.reading import reading
from tests.builders import NOW, job_object, kind_of, manifest, template
from tests.fuzz.objects import Form

O = TypeVar("O", bound=Object)  # noqa: E741 - as T is a type.
# Pods are rendered in slices, each in its own time.
SLICE: Final = 8
# Planned in a thread, beside the event loop.
LARGE: Final = "planned as a large one"
_NOTHING: Final = Children((), ())
_LOOP: Final = asyncio.Runner()


def through(form: Form, wire: bytes) -> str:
    """Take an object all the way from a watch, and return its outcome in a word."""
    obj = _watched(wire, _projection(form))
    if obj is None:
        return "malformed"
    if isinstance(obj, ScalerObject):
        return _scaled(form, obj)
    assert isinstance(obj, JobObject)
    return _planned(form, obj)


def is_listed(form: Form, wire: bytes) -> bool:
    """Return whether a list shows an object, rather than setting it apart.

    :raises AssertionError: if a watch does otherwise.
    """
    as_ = _projection(form)
    page = _LOOP.run(decode_page(b'{"items":[' + wire + b"]}", as_))
    watched = _watched(wire, as_)
    assert (watched is not None) is bool(page.items), f"listed {page.items}, watched {watched}"
    return bool(page.items)


def _projection(form: Form) -> type[JobObject] | type[ScalerObject]:
    return ScalerObject if form.scaler else JobObject


def _watched(wire: bytes, as_: type[O]) -> O | None:
    event = EventDecoder(as_).decode(b'{"type":"ADDED","object":' + wire + b"}")
    return event.object if isinstance(event, Changed) else None


def _planned(form: Form, obj: JobObject) -> str:
    kind = form.kind
    dialect = kind.dialect_of(obj)
    if dialect.managed_elsewhere(obj):
        return "elsewhere"
    read = reading(kind, obj)
    if isinstance(read.error, ContentError):
        # The controller gets over it, but whatever it is, a reader should have refused it by name.
        raise read.error
    if read.job is None:
        told, note = status.invalid(read.status, kind.resource.kind, 1, str(read.error), NOW)
        msgspec.json.encode((dialect.write_status(told), note.message))
        return "invalid"
    return _decided(read.job, read.obj, kind)


def _decided(job: Job, obj: JobObject, kind: Kind) -> str:
    dialect = kind.dialect_of(obj)
    draft = _draft(job) if job.elasticity and not job.partial else None
    drafted = with_draft(job, draft) if draft else job
    renderer = Renderer(drafted, dialect)
    observed = observe(drafted, _NOTHING, NOW)
    desired = Desired() if job.partial else renderer.desired(observed)
    planned = plan(drafted, observed, desired, NOW, Policy())
    msgspec.json.encode(
        (dialect.write_status(planned.status), [note.message for note in planned.notes])
    )
    if job.partial:
        return "unreadable and goes on"
    try:
        _render(Renderer(at_start(job), dialect))
    except InvalidJobError:
        return "unrenderable"
    return LARGE if job.size >= slices.LARGE else "planned"


def _render(renderer: Renderer) -> None:
    """Render what is not in slices, and one slice of what is."""
    for companion in (*renderer.companions(()), *renderer.framework.secrets()):
        msgspec.json.encode(renderer.companion(companion))
    for replica in itertools.islice(renderer.replicas_with_service(), SLICE):
        msgspec.json.encode(renderer.service(replica))
    for replica in itertools.islice(renderer.job.replicas, SLICE):
        msgspec.json.encode(renderer.pod(replica))


def _scaled(form: Form, obj: ScalerObject) -> str:
    resource = SCALE_INS if form.name == SCALE_INS.kind else SCALE_OUTS
    list(by_job(obj))
    scaler = scalers.read(obj, resource)
    draft = _draft(_SCALED, scaler)
    for change in draft.scalers.values():
        msgspec.json.encode(scalers.write_status(change.status, resource))
    return "invalid" if scaler.flaw else "planned"


def _draft(job: Job, *asked: Any) -> Draft:
    """Return what the workers of a job need at its start, or when somebody asks for others."""
    assert job.elasticity is not None
    count = job.count(WORKER)
    roster = job.status.roster or initial(count)
    manned = staffed(job, roster)
    observed = observe(manned, _NOTHING, NOW)
    found = [one for one in asked if not one.status.phase.finished]
    slots = TrainingJob(job).slots
    view = View(manned, observed, roster, job.elasticity, NOW, count, slots, scalers=found)
    return step(view)


def _scaled_job() -> Job:
    each = {"replicas": 2, "template": template("worker")}
    launcher = {"replicas": 1, "template": template("launcher")}
    spec = {"etReplicaSpecs": {"launcher": launcher, "worker": each}}
    wire = manifest("kai.alibabacloud.com/v1alpha1", "TrainingJob", spec, name="a")
    return kind_of(wire["apiVersion"], wire["kind"]).read(job_object(wire))


_SCALED: Final = _scaled_job()
