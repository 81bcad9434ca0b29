"""The schema of Kubeflow's kinds: as much as possible is validated at admission, without webhooks.

Kinds that are also served in other forms are stored under this schema, so it preserves the fields
of those.
"""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.dialects import run_policy_field, schema_parts
from dlctl.dialects.failure_policy import schema as failure_policy_schema
from dlctl.dialects.kubeflow import cel_rules
from dlctl.dialects.kubeflow.kind import MULTIKUEUE, KubeflowKind
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN
from dlctl.dialects.restart_policy import RestartPolicy

# Bounds the server's cost estimate of validation rules.
MAX_REPLICA_TYPES: Final = 16


def replica_map_schema(kind: KubeflowKind, *, is_v1: bool) -> JSON:
    # The definitions of the older operators had no schema, or one that kept unknown fields.
    is_open = kind.keeps_unknown_fields or kind.ignores_unknown_fields or not is_v1
    unknown_fields = PRESERVE_UNKNOWN if is_open else {}
    field = kind.replica_specs_field
    schema: JSON = {
        "type": "object",
        "description": "The desired replicas and policies of the job.",
        **unknown_fields,
        "properties": {
            field: _replica_specs(kind, unknown_fields, is_v1=is_v1),
            "runPolicy": _run_policy(kind, unknown_fields, is_v1=is_v1),
            **(_legacy_policies() if kind.schema.has_policies_in_spec else {}),
            **kind.schema.spec_properties,
        },
        "x-kubernetes-validations": [cel_rules.MANAGED_BY_IMMUTABLE, *kind.schema.spec_rules],
    }
    if is_v1:
        schema["properties"].update(kind.schema.v1_properties)
        schema["x-kubernetes-validations"] += kind.schema.v1_rules
    else:
        for name in kind.schema.v1_properties:
            schema_parts.keep_unchanged(schema, name)
        _add_older_defaults(schema, kind)
    if kind.list_form:
        listed = {
            "type": "array",
            "maxItems": MAX_REPLICA_TYPES * 2,
            "items": {"type": "object", **PRESERVE_UNKNOWN},
        }
        schema["properties"].update(replicaSpecs=listed, **(kind.schema.list_properties or {}))
        schema["x-kubernetes-validations"].append(cel_rules.replica_specs_required(field))
    elif kind.schema.requires_replica_specs:
        schema["required"] = [field]
    return schema


def add_former_fields(schema: JSON, kind: KubeflowKind) -> JSON:
    """Add what only old manifests have to the schema of a spec, and return it."""
    properties = schema["properties"]
    replica = properties[kind.replica_specs_field]["additionalProperties"]
    replica["properties"].update({name: {} for name in kind.annotation_by_field})
    properties.update({name: {} for name in kind.schema.ignored_fields})
    return schema


def _add_older_defaults(schema: JSON, kind: KubeflowKind) -> None:
    for name, value in kind.schema.older_defaults.items():
        schema["properties"][name]["default"] = value
    if kind.schema.older_restart_policy:
        replica = schema["properties"][kind.replica_specs_field]["additionalProperties"]
        replica["properties"]["restartPolicy"]["default"] = kind.schema.older_restart_policy


def _replica_specs(kind: KubeflowKind, unknown_fields: JSON, *, is_v1: bool) -> JSON:
    entry: JSON = {
        "type": "object",
        "required": ["template"],
        **unknown_fields,
        "properties": {
            "replicas": schema_parts.replicas(),
            "restartPolicy": {
                "type": "string",
                "enum": ["", *kind.replicas.restart_policies],
                "description": _restart_policy_description(kind),
            },
            "template": schema_parts.required_pod_template(
                is_current=is_v1 or kind.keeps_unknown_fields,
                # Former versions had no schema of templates.
                with_required=is_v1,
            ),
        },
    }
    if kind.requires_container_name:
        entry["x-kubernetes-validations"] = [cel_rules.container_required(kind)]
    types = ", ".join(map(kind.type_name, kind.replica_types))
    return {
        "type": "object",
        "description": f"The job's replicas by type: {types}.",
        "minProperties": 1,
        "maxProperties": MAX_REPLICA_TYPES,
        "additionalProperties": entry,
        "x-kubernetes-validations": [
            *cel_rules.replica_specs_rules(kind, case_insensitive=kind.keeps_unknown_fields),
            *kind.schema.replica_rules,
        ],
    }


def _restart_policy_description(kind: KubeflowKind) -> str:
    defaults = [f"{kind.replicas.default_restart_policy} by default"]
    for type_, policy in kind.replicas.restart_policy_by_type.items():
        defaults.append(f"{policy} for type {kind.type_name(type_)}")
    text = f"Restart policy; {', '.join(defaults)}."
    if RestartPolicy.EXIT_CODE in kind.replicas.restart_policies:
        text += " ExitCode restarts them after a retryable exit code."
    return text


def _run_policy(kind: KubeflowKind, unknown_fields: JSON, *, is_v1: bool) -> JSON:
    failures: JSON = {failure_policy_schema.FIELD: failure_policy_schema.UNCHECKED_SCHEMA}
    rules: JSON = {}
    if is_v1:
        failures = {failure_policy_schema.FIELD: failure_policy_schema.schema(kind.types_by_name)}
        rules = {"x-kubernetes-validations": [failure_policy_schema.LIMIT_RULE]}
    return {
        "type": "object",
        "description": "When the job runs, and its clean-up.",
        **unknown_fields,
        **rules,
        "properties": {
            **_policies(),
            run_policy_field.STARTING_DEADLINE: run_policy_field.STARTING_DEADLINE_SCHEMA,
            "suspend": {"type": "boolean", "default": False, **schema_parts.suspend()},
            "managedBy": {
                "type": "string",
                "maxLength": 63,
                **_controllers(kind),
            },
            "schedulingPolicy": schema_parts.scheduling_policy(unknown_fields),
            **failures,
        },
    }


def _controllers(kind: KubeflowKind) -> JSON:
    if kind.has_other_controllers:
        return {"description": "The controller of the job, if not this one."}
    return {
        "enum": [*kind.controllers, MULTIKUEUE],
        "description": "The controller of the job: this one, or MultiKueue's.",
    }


def _legacy_policies() -> JSON:
    """Return the policies in the spec itself, which are described in runPolicy."""
    return {
        name: {key: value for key, value in schema.items() if key != "description"}
        for name, schema in _policies().items()
    }


def former_run_policy() -> JSON:
    """Return the schema of ``RunPolicy``: so Go names a field that is given no name in JSON."""
    return {
        "type": "object",
        "description": "The former name of runPolicy.",
        "properties": {
            **_legacy_policies(),
            "suspend": schema_parts.suspend(),
            "schedulingPolicy": schema_parts.scheduling_policy({}),
        },
    }


def _policies() -> JSON:
    return {
        "cleanPodPolicy": {
            "type": "string",
            "enum": ["", "All", "Running", "None"],
            "description": "Which pods are deleted when the job has ended; None by default.",
        },
        "ttlSecondsAfterFinished": schema_parts.ttl(),
        "activeDeadlineSeconds": schema_parts.deadline(),
        "backoffLimit": {
            **schema_parts.int32(0),
            "description": "Number of failures that fails the job; unlimited by default.",
        },
    }
