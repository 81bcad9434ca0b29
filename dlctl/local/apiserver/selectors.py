"""Label and field selectors: parsed from their text, asked of stored objects.

Labels are at hand in storage; a field selector needs the object decoded, so it is asked last.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.meta import Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.changes import Stored

_META: Final = ("metadata.name", "metadata.namespace")
_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "jobs.batch": ("status.successful",),
}
_REQUIREMENT = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<no_key>[\w./-]+)
      | (?P<key>[\w./-]+)\s*(?:
            (?P<set_op>in|notin)\s*\((?P<values>[^()]*)\)
          | (?P<op>==|=|!=|>|<)\s*(?P<value>[\w.-]*)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


@attrs.frozen
class Requirement:
    """One condition on one label."""

    key: str
    op: str
    values: Sequence[str] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.op:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case _:
                return value is not None and _compares(value, self.op, self.values[0])


def _compares(value: str, op: str, bound: str) -> bool:
    if not value.lstrip("-").isdecimal():
        return False
    return int(value) > int(bound) if op == ">" else int(value) < int(bound)


def parse_labels(text: str) -> list[Requirement]:
    """Parse a label selector; one that cannot be read is a bad request."""
    requirements = []
    at = 0
    while at < len(text):
        found = _REQUIREMENT.match(text, at)
        if found is None or found.end() == at:
            raise status.bad_request(f"unable to parse requirement: {text[at:]!r}")
        at = found.end()
        requirements.append(_requirement(found))
    if text.rstrip().endswith(","):
        message = "found '', expected: identifier after ','"
        raise status.bad_request(f"unable to parse requirement: {message}")
    return requirements


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["no_key"], "!")
    if found["set_op"]:
        values = tuple(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], found["set_op"], values)
    op = found["op"]
    if op is None:
        return Requirement(found["key"], "exists")
    if op in (">", "<"):
        if not found["value"].lstrip("-").isdecimal():
            message = (
                f"unable to parse requirement: values[0][{found['key']}]: Invalid value: "
                f"\"{found['value']}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
            raise status.bad_request(message)
        return Requirement(found["key"], op, (found["value"],))
    return Requirement(found["key"], "notin" if op == "!=" else "in", (found["value"],))


@attrs.frozen
class FieldTerm:
    """One condition on one field; an absent field has the value ""."""

    field: str
    value: str
    equal: bool = True


def parse_fields(text: str, resource: Resource, selectable: Sequence[str]) -> list[FieldTerm]:
    """Parse a field selector; a field that is not selectable is a bad request."""
    known = {*_META, *_FIELDS.get(resource.qualified, ()), *selectable}
    terms = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"\s*([^=!]+?)\s*(==|=|!=)\s*(.*?)\s*", part)
        if found is None:
            raise status.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, op, value = found.groups()
        if field not in known:
            raise status.bad_request(f"field label not supported: {field}")
        terms.append(FieldTerm(field, value, op != "!="))
    return terms


def field_value(obj: Mapping[str, Any], resource: Resource, field: str) -> str:
    """Return a selectable field as text, as field selectors compare it."""
    if resource.qualified == "events" and field == "source":
        return str((obj.get("source") or {}).get("component") or obj.get("reportingComponent", ""))
    value: Any = obj
    for name in field.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return "false" if field in ("spec.unschedulable", "spec.hostNetwork") else ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


@attrs.frozen
class Selector:
    """Which objects of one resource are meant."""

    resource: Resource
    labels: Sequence[Requirement] = ()
    fields: Sequence[FieldTerm] = ()

    @property
    def everything(self) -> bool:
        return not self.labels and not self.fields

    def matches(self, stored: Stored | None) -> bool:
        if stored is None:
            return False
        if not all(requirement.matches(stored.labels) for requirement in self.labels):
            return False
        return not self.fields or self._fields_match(stored)

    def _fields_match(self, stored: Stored) -> bool:
        obj: Mapping[str, Any] = {}
        for term in self.fields:
            if term.field == "metadata.name":
                value = stored.key.name
            elif term.field == "metadata.namespace":
                value = stored.key.namespace
            else:
                obj = obj or stored.decoded(self.resource)
                value = field_value(obj, self.resource, term.field)
            if (value == term.value) != term.equal:
                return False
        return True


def parse(resource: Resource, labels: str, fields: str, selectable: Sequence[str]) -> Selector:
    return Selector(resource, parse_labels(labels), parse_fields(fields, resource, selectable))
