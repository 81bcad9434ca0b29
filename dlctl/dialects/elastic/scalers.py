"""ScaleIn and ScaleOut, read and their statuses written.

Reading never fails: what is wrong with a request is said in it, in et-operator's words if it had
any, and the request fails by it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.elastic import (
    SCALE_OUTS,
    Scaler,
    ScalerObject,
    ScalerPhase,
    ScalerStatus,
    Script,
)
from dlctl.api.meta import Resource
from dlctl.dialects import status_parts as parts
from dlctl.dialects.wire import MAX_REPLICAS, Fields
from dlctl.errors import InvalidJobError, shown

JSON = dict[str, Any]
DEFAULT_SCRIPT_TIMEOUT_S: Final = 60
# A script holds a slot that others wait for.
MAX_TIMEOUT_S: Final = 3600
# What a path begins with, or holds, that names no script: the files there are the processes' own.
# RE2, for the API server, and Python read it alike.
NO_SCRIPT: Final = r"^\s*(\.?/)*(proc|dev)(/|\s*$)|(^|/)\s*\.\.\s*(/|$)"
NO_SCRIPT_MESSAGE: Final = "must be the path of a script: not under /proc or /dev, and without '..'"
MAX_PATH: Final = 1024
VARIABLE: Final = "[A-Za-z_][A-Za-z0-9_]*"
ONE_OF_THEM: Final = (
    ".spec.toDelete.count or .spec.toDelete.podNames, only one of them should be set"
)
NO_COUNT: Final = ".spec.toAdd.count shouldn't be empty"
COUNT_TOO_SMALL: Final = ".spec.toAdd.count should be greater than 0"
_MOST: Final = 2**31 - 1


def read(obj: ScalerObject, resource: Resource) -> Scaler:
    """Read a request; one with a flaw may lack what comes after it."""
    meta = obj.metadata
    empty = Scaler(
        resource=resource,
        key=obj.key,
        uid=meta.uid,
        created=meta.creation_timestamp or parts.EPOCH,
        job="",
        status=read_status(obj.status, resource),
    )
    try:
        fields = Fields(msgspec.json.decode(obj.spec), ".spec")
        known = attrs.evolve(empty, job=fields.object("selector").text("name"))
    except (InvalidJobError, msgspec.DecodeError) as error:
        return attrs.evolve(empty, flaw=str(error))
    try:
        return _complete(known, fields)
    except InvalidJobError as error:
        return attrs.evolve(known, flaw=str(error))


def read_status(raw: msgspec.Raw, resource: Resource) -> ScalerStatus:
    wire = parts.stored(raw)
    phase = parts.text(wire, "phase")
    names = wire.get(_pods_field(resource))
    return ScalerStatus(
        phase=next((each for each in ScalerPhase if each == phase), ScalerPhase.NEW),
        conditions=tuple(parts.read_condition(c) for c in parts.mappings(wire, "conditions")),
        pods=tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else (),
    )


def write_status(status: ScalerStatus, resource: Resource) -> JSON:
    """Return the wire form, with what et-operator's own definition requires."""
    optional: JSON = {"phase": status.phase.value, _pods_field(resource): list(status.pods)}
    return {
        "conditions": [parts.write_condition(condition) for condition in status.conditions],
        "replicaStatuses": {},
        "restartCount": 0,
        **{name: value for name, value in optional.items() if value},
    }


def _pods_field(resource: Resource) -> str:
    return "addPods" if resource.kind == SCALE_OUTS.kind else "toDeletePods"


def _complete(scaler: Scaler, fields: Fields) -> Scaler:
    if not scaler.job:
        field = ".spec.selector.name"
        raise InvalidJobError("is missing: name the TrainingJob to scale", field=field)
    whole = _added(scaler, fields) if scaler.adds else _removed(scaler, fields)
    timeout_s = fields.optional_integer("timeout", least=1, most=_MOST)
    if timeout_s is not None:
        # Stored before the definition had a maximum.
        timeout_s = min(timeout_s, MAX_TIMEOUT_S)
    return attrs.evolve(
        whole,
        timeout_s=timeout_s,
        script=_script(fields, timeout_s),
        backoff_limit=fields.integer("backoffLimit", 0, most=_MOST),
    )


def _added(scaler: Scaler, fields: Fields) -> Scaler:
    wanted = fields.object("toAdd")
    if "count" not in wanted:
        return attrs.evolve(scaler, flaw=NO_COUNT)
    count = wanted.integer("count", 0, least=-_MOST, most=MAX_REPLICAS)
    if count < 1:
        return attrs.evolve(scaler, flaw=COUNT_TOO_SMALL)
    enough = wanted.optional_integer("minCount", least=1, most=count)
    return attrs.evolve(scaler, count=count, enough=enough)


def _removed(scaler: Scaler, fields: Fields) -> Scaler:
    wanted = fields.object("toDelete")
    names = _texts(wanted, "podNames")
    count = wanted.integer("count", 0, least=-_MOST, most=_MOST) if "count" in wanted else None
    if (count is None) is (not names) or (count is not None and count < 1):
        return attrs.evolve(scaler, flaw=ONE_OF_THEM)
    return attrs.evolve(scaler, count=count, pods=names or None)


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    given = fields.value(name)
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        raise InvalidJobError("must be a list of names", field=fields.at(name))
    return tuple(dict.fromkeys(given))


def _script(fields: Fields, timeout_s: int | None) -> Script | None:
    path = fields.text("script").strip()
    if not path:
        return None
    if re.search(NO_SCRIPT, path):
        raise InvalidJobError(NO_SCRIPT_MESSAGE, field=fields.at("script"))
    limit_s = timeout_s or DEFAULT_SCRIPT_TIMEOUT_S
    return Script(path, timeout_s=limit_s, env=tuple(_environment(fields)))


def _environment(fields: Fields) -> Iterator[tuple[str, str]]:
    for variable in fields.items("env") if "env" in fields else ():
        name = variable.text("name")
        if not re.fullmatch(VARIABLE, name):
            raise InvalidJobError(
                f"is {shown(name)}, but must be the name of a variable: letters, digits and '_'",
                field=variable.at("name"),
            )
        yield name, variable.text("value")
