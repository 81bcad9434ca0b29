"""Reading ScaleIn and ScaleOut, and writing their statuses.

Reading never fails: an invalid request contains its error, in et-operator's words if it had any,
and fails with it.
"""

import re
from collections.abc import Iterator
from typing import Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.api.objects.scalers import (
    MAX_SPEC_BYTES,
    LargeSpec,
    Scaler,
    ScalerObject,
    ScalerPhase,
    ScalerStatus,
    Script,
)
from dlctl.clock import EPOCH
from dlctl.dialects.et_operator.resources import SCALE_OUTS
from dlctl.dialects.field_reader import MAX_INT32, MAX_REPLICAS, FieldReader
from dlctl.dialects.status import status_codec as codec
from dlctl.errors import InvalidJobError, quoted

DEFAULT_SCRIPT_TIMEOUT_S: Final = 60
# A running script holds a slot that others wait for.
MAX_TIMEOUT_S: Final = 3600
# Path components under which there are no scripts, only files of processes and devices.
# Valid both as RE2, for the API server, and in Python.
FORBIDDEN_SCRIPT: Final = r"^\s*(\.?/)*(proc|dev)(/|\s*$)|(^|/)\s*\.\.\s*(/|$)"
FORBIDDEN_SCRIPT_MESSAGE: Final = (
    "must be the path of a script: not under /proc or /dev, and without '..'"
)
MAX_SCRIPT_PATH: Final = 1024
# A launcher gets them in a URL, which proxies limit to 8 KiB.
MAX_VARIABLES: Final = 1000
ENV_NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"
COUNT_OR_POD_NAMES: Final = (
    ".spec.toDelete.count or .spec.toDelete.podNames, only one of them should be set"
)
COUNT_MISSING: Final = ".spec.toAdd.count shouldn't be empty"
COUNT_TOO_SMALL: Final = ".spec.toAdd.count should be greater than 0"


def read(obj: ScalerObject, resource: Resource) -> Scaler:
    """Read a request; an invalid one may lack the fields after its first error."""
    empty = without_spec(obj, resource)
    try:
        if (large := obj.large_spec) is not None:
            return _too_large(empty, large)
        fields = FieldReader(msgspec.json.decode(obj.spec), ".spec")
        known = attrs.evolve(empty, job=fields.object("selector").string("name"))
    except (InvalidJobError, msgspec.DecodeError) as error:
        return attrs.evolve(empty, invalid_reason=str(error))
    try:
        return _read_spec(known, fields)
    except InvalidJobError as error:
        return attrs.evolve(known, invalid_reason=str(error))


def _too_large(scaler: Scaler, spec: LargeSpec) -> Scaler:
    fix = "remove by count" if spec.has_long_names else "shorten the variables, or use a file"
    message = f".spec: has {spec.size} bytes, but a request may have {MAX_SPEC_BYTES}: {fix}"
    return attrs.evolve(scaler, job=spec.job, invalid_reason=spec.error or message)


def without_spec(obj: ScalerObject, resource: Resource, invalid_reason: str = "") -> Scaler:
    """Return a request of which only the metadata and the status are known."""
    return Scaler(
        resource=resource,
        key=obj.key,
        uid=obj.metadata.uid,
        created=obj.metadata.creation_timestamp or EPOCH,
        is_scale_out=resource.kind == SCALE_OUTS.kind,
        job="",
        invalid_reason=invalid_reason,
        status=read_status(obj.status, resource),
    )


def read_status(raw: msgspec.Raw, resource: Resource) -> ScalerStatus:
    wire = codec.decode(raw)
    phase = codec.text(wire, "phase")
    return ScalerStatus(
        phase=next((each for each in ScalerPhase if each == phase), ScalerPhase.NEW),
        conditions=codec.read_conditions(wire),
        pods=tuple(codec.texts(wire, _pods_field(resource))),
    )


def write_status(status: ScalerStatus, resource: Resource) -> JSON:
    """Return the wire form, including the fields that et-operator's own CRD requires."""
    optional: JSON = {"phase": status.phase.value, _pods_field(resource): list(status.pods)}
    return {
        "conditions": [codec.write_condition(condition) for condition in status.conditions],
        "replicaStatuses": {},
        "restartCount": 0,
        **{name: value for name, value in optional.items() if value},
    }


def _pods_field(resource: Resource) -> str:
    return "addPods" if resource.kind == SCALE_OUTS.kind else "toDeletePods"


def _read_spec(scaler: Scaler, fields: FieldReader) -> Scaler:
    if not scaler.job:
        field = ".spec.selector.name"
        raise InvalidJobError("is missing: name the TrainingJob to scale", field=field)
    whole = (
        _read_scale_out(scaler, fields) if scaler.is_scale_out else _read_scale_in(scaler, fields)
    )
    timeout_s = fields.optional_integer("timeout", minimum=1, maximum=MAX_INT32)
    if timeout_s is not None:
        # Stored before the CRD had a maximum.
        timeout_s = min(timeout_s, MAX_TIMEOUT_S)
    return attrs.evolve(
        whole,
        timeout_s=timeout_s,
        script=_read_script(fields, timeout_s),
        backoff_limit=fields.integer("backoffLimit", 0, maximum=MAX_INT32),
    )


def _read_scale_out(scaler: Scaler, fields: FieldReader) -> Scaler:
    wanted = fields.object("toAdd")
    if "count" not in wanted:
        return attrs.evolve(scaler, invalid_reason=COUNT_MISSING)
    count = wanted.integer("count", 0, minimum=-MAX_INT32, maximum=MAX_REPLICAS)
    if count < 1:
        return attrs.evolve(scaler, invalid_reason=COUNT_TOO_SMALL)
    min_count = wanted.optional_integer("minCount", minimum=1, maximum=count)
    return attrs.evolve(scaler, count=count, min_count=min_count)


def _read_scale_in(scaler: Scaler, fields: FieldReader) -> Scaler:
    wanted = fields.object("toDelete")
    # Clients also send the field that they do not use, with its zero value.
    names = _read_pod_names(wanted)
    count = wanted.integer("count", 0, minimum=-MAX_INT32, maximum=MAX_INT32)
    if count < 0 or bool(count) is bool(names):
        return attrs.evolve(scaler, invalid_reason=COUNT_OR_POD_NAMES)
    return attrs.evolve(scaler, count=count or None, pods=names or None)


def _read_pod_names(fields: FieldReader) -> tuple[str, ...]:
    given = fields.value("podNames")
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise InvalidJobError("must be a list of names", field=fields.path_of("podNames"))
    return tuple(dict.fromkeys(given))


def _read_script(fields: FieldReader, timeout_s: int | None) -> Script | None:
    path = fields.string("script").strip()
    if not path:
        return None
    if re.search(FORBIDDEN_SCRIPT, path):
        raise InvalidJobError(FORBIDDEN_SCRIPT_MESSAGE, field=fields.path_of("script"))
    limit_s = timeout_s or DEFAULT_SCRIPT_TIMEOUT_S
    return Script(path, timeout_s=limit_s, env=tuple(_read_env(fields)))


def _read_env(fields: FieldReader) -> Iterator[tuple[str, str]]:
    given = fields.value("env")
    if isinstance(given, list) and len(given) > MAX_VARIABLES:
        message = f"has {len(given)} variables, but may have {MAX_VARIABLES}: use a file"
        raise InvalidJobError(message, field=fields.path_of("env"))
    for variable in fields.items("env") if "env" in fields else ():
        name = variable.string("name")
        if not re.fullmatch(ENV_NAME, name):
            raise InvalidJobError(
                f"is {quoted(name)}, but must be the name of a variable: letters, digits and '_'",
                field=variable.path_of("name"),
            )
        yield name, variable.string("value")
