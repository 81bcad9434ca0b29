"""The CustomResourceDefinition of a kind, small enough for a plain ``kubectl apply``."""

from typing import Any, Final

from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL
from dlctl.dialects.dialect import Dialect
from dlctl.dialects.kinds import Kind
from dlctl.dialects.names import LIMIT

JSON = dict[str, Any]

CATEGORY: Final = "dlctl"
OPEN: Final = {"x-kubernetes-preserve-unknown-fields": True}


def crd(kind: Kind) -> JSON:
    """Return the CRD in its wire form; the first dialect's version is the stored one."""
    resource = kind.resource
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": resource.qualified,
            "labels": {MANAGED_BY_LABEL: MANAGED_BY},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "plural": resource.plural,
                "singular": kind.singular,
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                # Several groups have a kind of this name: ``kubectl get dlctl`` shows them all.
                "categories": [CATEGORY],
            },
            "versions": [
                _version(name, dialect, kind, stored=name == resource.version)
                for name, dialect in kind.dialects.items()
            ],
        },
    }


def _version(name: str, dialect: Dialect, kind: Kind, *, stored: bool) -> JSON:
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": _schema(dialect, kind)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            _column("Phase", ".status.phase", "string"),
            _column("State", ".status.state", "string"),
            _column("Age", ".metadata.creationTimestamp", "date"),
            {**_column("Reason", ".status.reason", "string"), "priority": 1},
        ],
    }


def _schema(dialect: Dialect, kind: Kind) -> JSON:
    return {
        "type": "object",
        "description": f"A distributed {kind.framework.container_name()} job.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": dict(dialect.spec_schema(kind.framework)),
            "status": _status_schema(),
        },
        # Services and labels carry the name; the limits are theirs.
        "x-kubernetes-validations": [
            {
                "rule": f"self.metadata.name.size() <= {LIMIT}",
                "message": f"metadata.name must have at most {LIMIT} characters",
            },
            {
                "rule": "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "message": "metadata.name must be lower-case letters, digits and '-', "
                "and begin with a letter",
            },
        ],
    }


def _status_schema() -> JSON:
    return {
        "type": "object",
        "description": "What the controller last saw; only it writes here.",
        **OPEN,
        "properties": {
            "phase": _text(
                "Creating, Running, Suspended, CleanUp or Done; Failed if the spec is invalid."
            ),
            "state": _text("Unknown, Running, Succeeded or Failed."),
            "reason": _text("Why the job failed."),
            "startTime": {**_text("When the job began."), "format": "date-time"},
            "completionTime": {**_text("When the job ended."), "format": "date-time"},
            "conditions": _objects("What holds or held of the job; the last one is the news."),
            "replicaStatuses": _objects("How many replicas of each type are in which state."),
            "restarts": _object("Tries that replicas have used up, by replica."),
            "failure": _object("The first cause of the failure: replica, pod, exit code, message."),
        },
    }


def _text(description: str) -> JSON:
    return {"type": "string", "description": description}


def _object(description: str) -> JSON:
    return {"type": "object", "description": description, **OPEN}


def _objects(description: str) -> JSON:
    items = {"type": "object", **OPEN}
    # The systems before dlctl wrote null for none.
    return {"type": "array", "nullable": True, "description": description, "items": items}


def _column(name: str, path: str, type_: str) -> JSON:
    return {"name": name, "jsonPath": path, "type": type_}
