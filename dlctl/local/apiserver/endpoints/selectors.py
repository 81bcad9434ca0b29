"""Label and field selectors: parsed from text, matched against stored objects.

Labels are available without decoding; a field selector needs the decoded object, so it is checked
last.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.meta import Resource
from dlctl.local.apiserver import resource_traits, status
from dlctl.local.apiserver.endpoints.label_selectors import LabelSelector, parse_label_selector
from dlctl.local.apiserver.storage.stored_objects import StoredObject

_TERM: Final = re.compile("([^=!]*)(==|=|!=)(.*)", re.DOTALL)
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


@attrs.frozen
class FieldRequirement:
    """One condition on one field; an absent field has the value ""."""

    field: str
    value: str
    equal: bool = True


def parse_field_selector(
    text: str, resource: Resource, selectable: Sequence[str]
) -> list[FieldRequirement]:
    """Parse a field selector; a field that is not selectable is a bad request."""
    known = {*_META, *_FIELDS.get(resource.group_resource, ()), *selectable}
    terms = []
    for part in filter(None, text.split(",")):
        found = _TERM.fullmatch(part)
        if found is None:
            raise status.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, op, value = (group.strip() for group in found.groups())
        if not field and not value:
            continue
        if field not in known:
            raise status.bad_request(_unknown_field(field, resource))
        terms.append(FieldRequirement(field, value, op != "!="))
    return terms


def _unknown_field(field: str, resource: Resource) -> str:
    if not resource_traits.is_built_in(resource) or resource.group_resource in _FIELDS:
        return f"field label not supported: {field}"
    only = ", ".join(f'"{name}"' for name in _META)
    return f'"{field}" is not a known field selector: only {only}'


def field_value(obj: Mapping[str, Any], resource: Resource, field: str) -> str:
    """Return a selectable field as text, as field selectors compare it."""
    if resource.group_resource == "events" and field == "source":
        return str((obj.get("source") or {}).get("component") or obj.get("reportingComponent", ""))
    if field == "status.successful":
        return str((obj.get("status") or {}).get("succeeded", 0))
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
    """A selection of objects of one resource."""

    resource: Resource
    labels: LabelSelector = attrs.field(factory=LabelSelector)
    fields: Sequence[FieldRequirement] = ()

    @property
    def everything(self) -> bool:
        return not self.labels and not self.fields

    def matches(self, stored: StoredObject | None) -> bool:
        if stored is None:
            return False
        if not self.labels.matches(stored.labels):
            return False
        return not self.fields or self._fields_match(stored)

    def _fields_match(self, stored: StoredObject) -> bool:
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
    return Selector(
        resource, parse_label_selector(labels), parse_field_selector(fields, resource, selectable)
    )
