"""The schema of the list dialects' ``spec``: as strict as case-insensitive names allow.

Names of fields and replica types are read case-insensitively, so the schema validates the
documented spelling, and other spellings are validated when the job is read.
"""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.dialects import run_policy_field, schema_parts
from dlctl.dialects.field_reader import MAX_PORT, MAX_REPLICAS
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN, pod_template_schema
from dlctl.dialects.replica_lists.image_server import ImageServer
from dlctl.dialects.replica_lists.list_form import ListForm, StorageKind
from dlctl.frameworks.dljob import DLJob

# Bounds keep the server's cost estimate of validation rules within its budget.
MAX_ENTRIES: Final = 32

_MAX_REPLICAS_RULE: Final[JSON] = {
    "rule": f"self.map(e, e.?replicas.orValue(1)).sum() <= {MAX_REPLICAS}",
    "message": f"a job may have at most {MAX_REPLICAS} replicas of all types together",
}


def replica_list_schema(form: ListForm) -> JSON:
    framework = form.framework
    types = _type_names(framework)
    entry = _entry_schema(
        {
            form.type_field: {
                "type": "string",
                "description": f"One of {', '.join(types)}; {form.default_type} by default.",
                "maxLength": 63,
            },
            form.port_field: {
                **schema_parts.int32(1),
                "maximum": MAX_PORT,
                "description": f"Port of the replicas; {form.default_port} by default.",
            },
        },
        case_insensitive=form.case_insensitive_templates,
    )
    entry["x-kubernetes-validations"] = [
        _known_type_rule(form.type_field, framework),
        *_singleton_rules(form.type_field, framework),
    ]
    schema: JSON = {
        "type": "object",
        "description": "The desired replicas and policies of the job.",
        **PRESERVE_UNKNOWN,
        "properties": {
            "replicaSpecs": {
                "type": "array",
                "maxItems": MAX_ENTRIES,
                "description": "The job's replicas, one entry per type.",
                "items": entry,
                "x-kubernetes-validations": [_MAX_REPLICAS_RULE],
            },
            "RuntimeId": {
                "type": "string",
                "maxLength": 16,
                "description": "Part of the children's names; derived from the UID by default.",
            },
            "jobMode": _enum("dist forms a cluster; local runs one WORKER.", "", "dist", "local"),
            "cleanupPodPolicy": _enum(
                "Which pods are deleted when the job has ended.", "", "All", "Running", "None"
            ),
            "runPolicy": run_policy_field.schema(framework.replica_types),
            "schedulerName": {"type": "string", "description": "Scheduler of the job's pods."},
            f"{form.field_prefix}Image": _string(_image_description(form.image_server)),
            "terminationPolicy": _termination_policy(form),
        },
    }
    if form.storage_kind is not None:
        _add_v1_properties(schema, form.storage_kind)
    return schema


def _add_v1_properties(schema: JSON, storage_kind: StorageKind) -> None:
    """Add the types of v1's fields: v1's clients decode jobs of this form too."""
    field = storage_kind.replica_specs_field
    properties = schema["properties"]
    for name, property_schema in storage_kind.schema.spec_properties.items():
        properties.setdefault(name, property_schema)
    properties["runPolicy"]["properties"].update(
        managedBy={"type": "string"},
        schedulingPolicy=schema_parts.scheduling_policy(PRESERVE_UNKNOWN),
    )
    message = (
        f"is of another version: write apiVersion kubeflow.org/v1 with {field}, "
        "or list replicaSpecs"
    )
    schema_parts.keep_unchanged(schema, field, message)
    # In another spelling, v1 does not see them, and would reject every status of the job.
    required = {
        "rule": f"has(self.replicaSpecs) || has(self.{field})",
        "message": "replicaSpecs is missing: list the replicas under exactly this name",
    }
    schema["x-kubernetes-validations"].append(required)
    for name in storage_kind.schema.v1_properties:
        schema_parts.keep_unchanged(schema, name)


def bare_list_schema(framework: type[DLJob]) -> JSON:
    entry = _entry_schema(
        {
            "replicaType": {
                "type": "string",
                "maxLength": 63,
                "description": f"One of {', '.join(_type_names(framework))}.",
            }
        }
    )
    entry["required"] = ["replicas", "replicaType", "template"]
    entry["x-kubernetes-validations"] = [
        _known_type_rule("replicaType", framework),
        *_singleton_rules("replicaType", framework),
    ]
    return {
        "type": "array",
        "maxItems": MAX_ENTRIES,
        "description": f"The job's replicas: {', '.join(_type_names(framework))}.",
        "items": entry,
        "x-kubernetes-validations": [_MAX_REPLICAS_RULE],
    }


def status_schema(*, shared: bool = False) -> JSON:
    """Return the schema of ``status``; if shared with v1, with the types of v1's fields."""
    if shared:
        schema = schema_parts.status_schema()
        return {**schema, "properties": {**schema["properties"], **_STATUS_PROPERTIES}}
    return {
        "type": "object",
        "description": "The last observed state, written by the controller only.",
        **PRESERVE_UNKNOWN,
        "properties": {
            **_STATUS_PROPERTIES,
            "startTime": {**_string("When the job began."), "format": "date-time"},
            "completionTime": {**_string("When the job ended."), "format": "date-time"},
            "conditions": _objects("The conditions of the job; the last one is the latest."),
            "replicaStatuses": _objects("The number of replicas by type and state."),
        },
    }


def _entry_schema(properties: JSON, *, case_insensitive: bool = True) -> JSON:
    return {
        "type": "object",
        **PRESERVE_UNKNOWN,
        "properties": {
            "replicas": schema_parts.replicas(),
            "template": pod_template_schema(case_insensitive=case_insensitive),
            **properties,
        },
    }


def _image_description(server: ImageServer | None) -> str:
    if server is None:
        return "Without effect."
    default = f"; {server.default_image} by default" if server.default_image else ""
    return f"Image of a {server.replica_type.upper()} entry that has no template{default}."


def _termination_policy(form: ListForm) -> JSON:
    chief = {
        "type": "object",
        **PRESERVE_UNKNOWN,
        "properties": {
            "replicaName": {"type": "string"},
            form.chief_index_field: {"type": "integer", "minimum": 0},
        },
    }
    return {
        "type": "object",
        **PRESERVE_UNKNOWN,
        "description": "Names the replica whose end is the end of the job.",
        "properties": {form.chief_field: chief},
    }


def _known_type_rule(field: str, framework: type[DLJob]) -> JSON:
    types = _type_names(framework)
    return {
        "rule": f"!has(self.{field}) || self.{field}.lowerAscii() in {framework.replica_types}",
        "message": f"{field} must be one of {', '.join(types)}",
    }


def _singleton_rules(field: str, framework: type[DLJob]) -> list[JSON]:
    return [
        {
            "rule": f"!has(self.{field}) || self.{field}.lowerAscii() != '{type_}' || "
            "!has(self.replicas) || self.replicas == 1",
            "message": f"there must be exactly 1 {type_.upper()}",
        }
        for type_ in framework.singletons
    ]


def _enum(description: str, *values: str) -> JSON:
    # Values are read case-insensitively.
    options = "|".join(values)
    return {
        "type": "string",
        "description": description,
        "pattern": f"^(?i:{options})$",
    }


def _type_names(framework: type[DLJob]) -> list[str]:
    return [type_.upper() for type_ in framework.replica_types]


def _string(description: str) -> JSON:
    return {"type": "string", "description": description}


def _object(description: str) -> JSON:
    return {"type": "object", "description": description, **PRESERVE_UNKNOWN}


def _objects(description: str) -> JSON:
    items = {"type": "object", **PRESERVE_UNKNOWN}
    # Former operators wrote null for an empty list.
    return {"type": "array", "nullable": True, "description": description, "items": items}


_STATUS_PROPERTIES: Final[JSON] = {
    "phase": _string(
        "Creating, Running, Suspended, CleanUp or Done; Failed if the spec is invalid."
    ),
    "state": _string("Unknown, Running, Succeeded or Failed."),
    "reason": _string("Why the job failed."),
    "restarts": _object("Failed attempts, by replica."),
    "failure": _object("The first cause of the failure: replica, pod, exit code, message."),
}
