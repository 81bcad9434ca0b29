"""Validation of a framework's class, at class definition.

Job types become kinds and replica types become parts of pod names, so both must conform to
Kubernetes' rules; otherwise the error would show only after a job is submitted.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_REPLICA_TYPE: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_PORTS: Final = range(1, 65536)


def invalid_reason(framework: type) -> str:
    """Return the first thing that is missing or invalid, or an empty string."""
    return next(_problems(framework), "")


def _problems(framework: type) -> Iterator[str]:
    kind = getattr(framework, "job_type", None)
    if not (isinstance(kind, str) and _KIND.fullmatch(kind)):
        yield "needs the class variable job_type, the kind of its jobs: a string like 'MXJob'"
    types = getattr(framework, "replica_types", None)
    if not isinstance(types, list) or not types:
        yield "needs the class variable replica_types: a list like ['scheduler', 'worker']"
        return
    yield from _replica_type_problems(framework, types)
    properties = getattr(framework, "container_properties", None)
    ports = properties.get("ports") if isinstance(properties, Mapping) else None
    if not isinstance(ports, list) or not ports or any(port not in _PORTS for port in ports):
        yield "needs the class variable container_properties: a dict like {'ports': [9091]}"
    method = getattr(framework, "get_environment_variables", None)
    if method is None or getattr(method, "__isabstractmethod__", False):
        yield "needs the method get_environment_variables(self, replica_spec, replica_index)"


def _replica_type_problems(framework: type, types: list[Any]) -> Iterator[str]:
    malformed = [t for t in types if not (isinstance(t, str) and _REPLICA_TYPE.fullmatch(t))]
    if malformed:
        yield (
            f"has {malformed} in replica_types, which are part of pod names: use lower-case "
            "letters, digits and '-'"
        )
    elif len(set(types)) < len(types):
        yield f"lists a type twice in replica_types: {types}"
    chief = getattr(framework, "chief_type", "")
    if chief and chief not in types:
        yield f"has the chief_type {chief!r}, which is not one of {types}"
    unknown = [t for t in getattr(framework, "singletons", ()) if t not in types]
    if unknown:
        yield f"has in singletons {unknown}, which are not among {types}"
