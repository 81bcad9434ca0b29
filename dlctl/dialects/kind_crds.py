"""The CustomResourceDefinition of a kind, small enough for a plain ``kubectl apply``."""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.dialects import schema_parts
from dlctl.dialects.child_names import MAX_LENGTH
from dlctl.dialects.dialect import Dialect
from dlctl.dialects.kind import Kind

CATEGORY: Final = "dlctl"
# The reason why the job does not run, in the wide form of ``kubectl get``.
_WAITING_PATH: Final = '.status.conditions[?(@.type=="Waiting")].message'
_WAITING_COLUMN: Final = ("Waiting", _WAITING_PATH, "string", 1)
# The limits of labels and of services. The rules apply only to new jobs: otherwise not even the
# status of jobs stored before them could be written.
_NAME_RULES: Final = [
    {
        "rule": f"oldSelf.hasValue() || self.metadata.name.size() <= {MAX_LENGTH}",
        "optionalOldSelf": True,
        "message": f"metadata.name must have at most {MAX_LENGTH} characters",
    },
    {
        "rule": "oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "optionalOldSelf": True,
        "message": "metadata.name must be lower-case letters, digits and '-', "
        "and begin with a letter",
    },
]


def kind_crds(kind: Kind) -> list[JSON]:
    """Return the CRDs of a kind: its own and those of its scalers."""
    elastic = kind.elastic
    return [job_crd(kind), *(map(elastic.scaler_crd, kind.scalers) if elastic else ())]


def job_crd(kind: Kind) -> JSON:
    """Return the CRD in its wire form; the first dialect's version is the stored one."""
    versions = [
        _version(name, dialect, kind, is_storage=name == kind.resource.version)
        for name, dialect in kind.dialects.items()
    ]
    # Several groups have kinds of the same name: ``kubectl get dlctl`` shows them all.
    return schema_parts.definition(kind.resource, kind.singular, versions, [CATEGORY])


def _version(name: str, dialect: Dialect, kind: Kind, *, is_storage: bool) -> JSON:
    schema = _schema(dialect, kind)
    stored = kind.dialects[kind.resource.version]
    # kubectl asks for the stored version by default, and definitions are large.
    columns = (*dialect.printer_columns, *((_WAITING_COLUMN,) if is_storage else ()))
    is_repeated = not is_storage and type(dialect) is type(stored)
    return {
        "name": name,
        "served": True,
        "storage": is_storage,
        "schema": {"openAPIV3Schema": _without_descriptions(schema) if is_repeated else schema},
        "subresources": {
            "status": {},
            **({"scale": dialect.scale_subresource} if dialect.scale_subresource else {}),
        },
        "additionalPrinterColumns": [_column(*column) for column in columns],
    }


def _schema(dialect: Dialect, kind: Kind) -> JSON:
    return {
        "type": "object",
        "description": f"A distributed {dialect.framework.container_name()} job.",
        **({"required": ["spec"]} if dialect.requires_spec else {}),
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": dict(dialect.spec_schema()),
            "status": dict(dialect.status_schema()),
        },
        "x-kubernetes-validations": [
            *(_NAME_RULES if dialect.has_services else _NAME_RULES[:1]),
            *dialect.validation_rules,
        ],
    }


def _without_descriptions(schema: JSON) -> JSON:
    """Return a schema without descriptions: only the stored version has them."""
    stripped = {name: value for name, value in schema.items() if name != "description"}
    for name in ("items", "additionalProperties"):
        if name in stripped:
            stripped[name] = _without_descriptions(stripped[name])
    if "properties" in stripped:
        stripped["properties"] = {
            name: _without_descriptions(each) for name, each in stripped["properties"].items()
        }
    return stripped


def _column(name: str, path: str, type_: str, priority: int = 0) -> JSON:
    column: JSON = {"name": name, "jsonPath": path, "type": type_}
    return {**column, "priority": priority} if priority else column
