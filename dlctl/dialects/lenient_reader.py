"""Reading a started job whose spec has become invalid: field by field, as far as possible.

Invalid fields count as absent, and of an invalid pod template only the container names are known.
That is enough to classify existing pods, and to suspend, end and clean up the job, but not to
create pods.
"""

import copy
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import attrs
import msgspec

from dlctl.api.job import Job, SuccessPolicy
from dlctl.api.policies.run_policy import RunPolicy
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.failure_policy import reader as failure_policy_reader
from dlctl.dialects.kind import Kind
from dlctl.errors import InvalidJobError

T = TypeVar("T")
# More than one edit is likely to break; each costs another reading.
_MAX_DROPPED_FIELDS: Final = 16
_PATH_SEGMENT: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
# Fields that children do not depend on.
POLICY_FIELDS: Final = frozenset(
    {
        "activedeadlineseconds", "backofflimit", "cleanpodpolicy", "cleanuppodpolicy",
        "runpolicy", "suspend", "ttlsecondsafterfinished",
    }
)  # fmt: skip


def read_partially(kind: Kind, obj: DecodedObject, reason: str) -> Job:
    """Read a job without its invalid fields; ``reason`` is what is wrong with it.

    :raises InvalidJobError: if what is left is no job.
    """
    job, dropped = _read_without_invalid_fields(kind.read, obj)
    partial = any(_top_level_field(field) not in POLICY_FIELDS for field in dropped)
    return attrs.evolve(job, invalid_reason=reason, is_partial=partial)


def job_of_status(obj: DecodedObject, status: JobStatus) -> Job:
    """Return a job of which only the status is known, whatever its spec."""
    job = Job(
        resource=obj.resource,
        key=obj.key,
        uid=obj.metadata.uid,
        generation=obj.metadata.generation or 0,
        replica_specs=(),
        success_policy=SuccessPolicy((), ()),
        name_prefix=obj.metadata.name,
        runtime_id="",
        status=status,
        annotations=obj.metadata.annotations or {},
        is_partial=True,
    )
    return attrs.evolve(job, messages=obj.dialect.messages(job))


def job_without_spec(kind: Kind, obj: DecodedObject, status: JobStatus, reason: str) -> Job:
    """Return a started job without any field of its spec."""
    return attrs.evolve(
        job_of_status(obj, status),
        resource=kind.resource,
        defaults=kind.defaults,
        invalid_reason=reason,
    )


def with_run_policy(job: Job, obj: DecodedObject) -> Job:
    """Return a job with its object's current run policy, without the invalid fields of that."""
    policy_read, suspend_unknown = RunPolicy(), True
    had_failure_policy = failures_unknown = job.has_failure_policy
    if obj.spec is not None:
        readable = msgspec.structs.replace(obj, spec=_without_scheduling_policy(obj.spec))
        with suppress(InvalidJobError):
            policy_read, dropped = _read_without_invalid_fields(obj.dialect.run_policy, readable)
            suspend_unknown = any(
                field.lower().endswith(("suspend", "runpolicy")) for field in dropped
            )
            failures_unknown = any(
                _hides_failure_policy(field, had_one=had_failure_policy) for field in dropped
            )
    # An invalid value there does not mean that the job should start.
    policy = attrs.evolve(
        policy_read,
        suspended=job.status.phase is JobPhase.SUSPENDED
        if suspend_unknown
        else policy_read.suspended,
        scheduling_policy=job.run_policy.scheduling_policy,
    )
    # Without some of its rules, a failure policy would decide otherwise.
    return attrs.evolve(job, run_policy=policy, is_partial=job.is_partial or failures_unknown)


def _hides_failure_policy(field: str, *, had_one: bool) -> bool:
    """Return whether a failure policy is not known as a whole without a field.

    Of kinds that have none, the whole field is invalid.
    """
    *_, last = segments = [name.lower() for _, name in _PATH_SEGMENT.findall(field)]
    is_inside = "failurepolicy" in segments and last != "failurepolicy"
    return is_inside or (had_one and last in ("failurepolicy", "runpolicy"))


def _without_scheduling_policy(spec: Any) -> Any:
    """Return a spec without the scheduling policy, which may have any number of fields."""
    if not isinstance(spec, dict):
        return spec
    return {
        name: _without_scheduling_policy(value) if name.lower() == "runpolicy" else value
        for name, value in spec.items()
        if name.lower() != "schedulingpolicy"
    }


def _read_without_invalid_fields(
    read: Callable[[DecodedObject], T], obj: DecodedObject
) -> tuple[T, tuple[str, ...]]:
    """Read an object without its invalid fields, and return these as well.

    :raises InvalidJobError: if something other than a field is wrong.
    """
    dropped = list[str]()
    while True:
        try:
            return read(obj), tuple(dropped)
        except InvalidJobError as error:
            if error.field in dropped or len(dropped) >= _MAX_DROPPED_FIELDS:
                raise
            readable = _without_invalid_field(obj, error.field)
            if readable is None:
                raise
            obj = readable
            dropped.append(error.field)


def _without_invalid_field(obj: DecodedObject, field: str) -> DecodedObject | None:
    """Return an object without an invalid field; None if it cannot be left out."""
    if field.startswith(failure_policy_reader.ANNOTATION_FIELD):
        # That there is a policy is known: without one, failures would be decided at once.
        annotations = {**(obj.metadata.annotations or {}), failure_policy_reader.ANNOTATION: "{}"}
        metadata = msgspec.structs.replace(obj.metadata, annotations=annotations)
        return msgspec.structs.replace(obj, metadata=metadata)
    (_, root), *segments = _PATH_SEGMENT.findall(field)
    spec = _without_field(obj.spec, segments, obj.dialect) if root == "spec" else None
    return None if spec is None else msgspec.structs.replace(obj, spec=spec)


def _without_field(node: Any, segments: list[tuple[str, str]], dialect: Dialect) -> Any:
    """Return a value without a field, or without its innermost existing parent.

    None if the field is missing. The rest of the value, which may be large, is not copied.
    """
    if not segments:
        return None
    (index, name), *rest = segments
    key = _find_key(node, index, name, [each for _, each in rest])
    if name == "template" and isinstance(node, dict):
        return {**node, key or name: _minimal_template(node.get(key or name), dialect)}
    if key is None:
        return None
    copied = copy.copy(node)
    if not rest or not isinstance(node[key], dict | list):
        del copied[key]
        return copied
    copied[key] = _without_field(node[key], rest, dialect)
    return None if copied[key] is None else copied


def _find_key(node: Any, index: str, name: str, rest: list[str]) -> Any:
    """Return the key of a path's next step; None if it does not exist."""
    if index:
        return int(index) if isinstance(node, list) and int(index) < len(node) else None
    if not isinstance(node, dict):
        return None
    # Resource names contain dots.
    candidates = (name.lower(), ".".join([name, *rest]).lower())
    return next((key for key in node if key.lower() in candidates), None)


def _minimal_template(invalid: Any, dialect: Dialect) -> Any:
    """Return a valid template with the container names of an invalid one."""
    spec = invalid.get("spec") if isinstance(invalid, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    listed = containers if isinstance(containers, list) else []
    names = [each.get("name") for each in listed if isinstance(each, dict)]
    valid_names = [name for name in names if isinstance(name, str) and name]
    valid_names = valid_names or [dialect.framework.container_name()]
    return {"spec": {"containers": [{"name": name, "image": "unknown"} for name in valid_names]}}


def _top_level_field(field: str) -> str:
    segments = [name for _, name in _PATH_SEGMENT.findall(field)]
    return segments[1].lower() if len(segments) > 1 else ""
