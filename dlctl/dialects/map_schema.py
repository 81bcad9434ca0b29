"""The schema of Kubeflow's kinds: what can be checked at admission is, with no webhook.

A kind that is served in other forms too is stored in this one, so its schema takes those as well:
it is open where the others have fields of their own.
"""

from typing import TYPE_CHECKING, Any, Final

from dlctl.api import quantities
from dlctl.dialects import map_rules, own_fields, pod_schema
from dlctl.dialects.pod_values import TIME
from dlctl.dialects.restart_policy import RestartPolicy
from dlctl.dialects.wire import MAX_REPLICAS

if TYPE_CHECKING:
    from dlctl.dialects.replica_map import ReplicaMap

JSON = dict[str, Any]

# Bounds keep the cost of validation rules, which the server estimates, within its budget.
MAX_TYPES: Final = 16
MAX_CONTAINERS: Final = 256
# Who may be left the job to: v1's operator, which dlctl stands in for, or another cluster's.
MANAGERS: Final = ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue")
_OPEN: Final = {"x-kubernetes-preserve-unknown-fields": True}
_RESTART_POLICIES: Final = ["", *(policy.value for policy in RestartPolicy)]


def of_replica_map(dialect: "ReplicaMap") -> JSON:
    own = own_fields.of(dialect.framework)
    field, opened = dialect.specs_field, _OPEN if dialect.shared else {}
    schema: JSON = {
        "type": "object",
        "description": "What the job consists of and what becomes of it.",
        **opened,
        "properties": {
            field: _replica_specs(dialect, opened),
            "runPolicy": _run_policy(opened),
            # Where the operators before training-operator had them.
            **_policies(),
            **own.properties,
        },
        "x-kubernetes-validations": [map_rules.MANAGED_BY, *own.rules],
    }
    if dialect.shared:
        listed = {"type": "array", "maxItems": MAX_TYPES * 2, "items": {"type": "object", **_OPEN}}
        schema["properties"]["replicaSpecs"] = listed
        schema["x-kubernetes-validations"].append(map_rules.either_form(field))
    else:
        schema["required"] = [field]
    return schema


def of_status() -> JSON:
    """Return the schema of ``status``: typed as v1's Go types are, open for what they skip."""
    replica = {
        "type": "object",
        **_OPEN,
        "properties": {
            **{name: number(0) for name in ("active", "succeeded", "failed")},
            "selector": {"type": "string"},
            "labelSelector": pod_schema.of_type("LabelSelector"),
        },
    }
    by_type: JSON = {"type": "object", "nullable": True, "additionalProperties": replica}
    condition = {name: {"type": "string"} for name in ("type", "status", "reason", "message")}
    times = {name: _time() for name in ("lastUpdateTime", "lastTransitionTime")}
    conditions = {
        "type": "array",
        "nullable": True,
        "description": "What holds or held of the job; the last one is the news.",
        "items": {
            "type": "object",
            "required": ["type", "status"],
            "properties": {**condition, **times},
        },
    }
    return {
        "type": "object",
        "description": "What the controller last saw; only it writes here.",
        **_OPEN,
        "properties": {
            "conditions": conditions,
            "replicaStatuses": {
                "description": "How many replicas of each type are in which state.",
                **by_type,
            },
            "startTime": _time(),
            "completionTime": _time(),
            "lastReconcileTime": _time(),
            "dlctl": {"type": "object", "description": "What dlctl remembers.", **_OPEN},
        },
    }


def _time() -> JSON:
    # The format alone takes times without a zone, at which Go's decoder gives up the whole list.
    return {"type": "string", "format": "date-time", "nullable": True, "pattern": TIME}


def _replica_specs(dialect: "ReplicaMap", opened: JSON) -> JSON:
    framework = dialect.framework
    entry: JSON = {
        "type": "object",
        "required": ["template"],
        **opened,
        "properties": {
            "replicas": {
                **number(0),
                "maximum": MAX_REPLICAS,
                "description": "How many.",
            },
            "restartPolicy": {
                "type": "string",
                "enum": _RESTART_POLICIES,
                "description": f"Of its pods; {framework.restart_policy} if left out. ExitCode "
                "runs them again unless their exit code says that it would be no use.",
            },
            "template": pod_template(),
        },
    }
    if framework.names_container:
        entry["x-kubernetes-validations"] = [map_rules.container(framework)]
    types = ", ".join(map(framework.spelling, framework.replica_types))
    return {
        "type": "object",
        "description": f"The job's replicas by type: {types}.",
        "minProperties": 1,
        "maxProperties": MAX_TYPES,
        "additionalProperties": entry,
        "x-kubernetes-validations": [
            *map_rules.of_replica_specs(framework, any_case=dialect.shared),
            *own_fields.of(framework).replica_rules,
        ],
    }


def pod_template() -> JSON:
    """Return the schema of a pod template that names a container and its image."""
    template = pod_schema.pod_template()
    spec = template["properties"]["spec"]
    containers = spec["properties"]["containers"]
    container = containers["items"]
    named = {name: {"type": "string", "minLength": 1} for name in ("name", "image")}
    container = _narrowed(container, named, required=list(named))
    containers = {**containers, "minItems": 1, "maxItems": MAX_CONTAINERS, "items": container}
    spec = _narrowed(spec, {"containers": containers}, required=["containers"])
    return _narrowed(template, {"spec": spec}, required=["spec"])


def _narrowed(schema: JSON, properties: JSON, *, required: list[str]) -> JSON:
    return {
        **schema,
        "required": required,
        "properties": {**schema["properties"], **properties},
    }


def _run_policy(opened: JSON) -> JSON:
    return {
        "type": "object",
        "description": "When the job runs, and what becomes of it afterwards.",
        **opened,
        "properties": {
            **_policies(),
            "suspend": {
                "type": "boolean",
                "default": False,
                "description": "Whether the job is to have no pods for the time being.",
            },
            "managedBy": {
                "type": "string",
                "maxLength": 63,
                "enum": list(MANAGERS),
                "description": "Who runs the job: this controller, or one that MultiKueue names.",
            },
            "schedulingPolicy": scheduling_policy(opened),
        },
    }


def scheduling_policy(opened: JSON) -> JSON:
    return {
        "type": "object",
        "description": "What a scheduler of gangs is told.",
        **opened,
        "properties": {
            "minAvailable": number(1),
            "queue": {
                "type": "string",
                "x-kubernetes-validations": [map_rules.QUEUE],
            },
            "minResources": {
                "type": "object",
                "additionalProperties": {
                    "x-kubernetes-int-or-string": True,
                    "maxLength": quantities.MAX_CHARS,
                    "pattern": quantities.PATTERN,
                },
            },
            "priorityClass": {"type": "string"},
            "scheduleTimeoutSeconds": number(0),
        },
    }


def _policies() -> JSON:
    return {
        "cleanPodPolicy": {
            "type": "string",
            "enum": ["", "All", "Running", "None"],
            "description": "Which pods are deleted when the job has ended; None if left out.",
        },
        "ttlSecondsAfterFinished": {
            **number(0),
            "description": "Seconds after its end when the job is deleted; never, if left out.",
        },
        "activeDeadlineSeconds": {
            **number(1),
            "description": "Seconds after its start when the job fails.",
        },
        "backoffLimit": {
            **number(0),
            "description": "Failures that fail the job; no limit, if left out.",
        },
    }


def number(least: int) -> JSON:
    return {"type": "integer", "format": "int32", "minimum": least}
