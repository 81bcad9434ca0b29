"""The schema of TrainingJob: as much as possible is validated at admission, without webhooks.

Objects stored under et-operator's CRD, which validated almost nothing, can still have their
status written.
"""

from typing import Final

from dlctl.api.job import LAUNCHER, WORKER
from dlctl.api.json_types import JSON
from dlctl.api.policies.elasticity import AttachMode
from dlctl.dialects import run_policy_field, schema_parts
from dlctl.dialects.child_names import MAX_LENGTH
from dlctl.dialects.et_operator.policies import DEFAULT_BACKOFF_LIMIT
from dlctl.dialects.failure_policy import schema as failure_policy_schema
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN
from dlctl.dialects.restart_policy import RestartPolicy

_RESTART_POLICIES: Final = ["", *(policy.value for policy in RestartPolicy)]
# A limit below 1 is an error of its own.
_BOUNDS_RULES: Final = (
    {
        "rule": "self.?replicas.orValue(1) < 1 || "
        "self.?minReplicas.orValue(1) <= self.?replicas.orValue(1)",
        "message": "minReplicas must not be more than replicas",
        "fieldPath": ".minReplicas",
    },
    {
        "rule": "self.?maxReplicas.orValue(1) < 1 || "
        f"self.?replicas.orValue(1) <= self.?maxReplicas.orValue({MAX_REPLICAS})",
        "message": "replicas must not be more than maxReplicas",
        "fieldPath": ".replicas",
    },
)


def training_job_spec_schema() -> JSON:
    policies = _policies()
    return {
        "type": "object",
        "description": "The desired replicas and policies of the job.",
        "required": ["etReplicaSpecs"],
        "properties": {
            "etReplicaSpecs": _replica_specs(),
            "launcherAttachMode": {
                "type": "string",
                "enum": ["", *(mode.value for mode in AttachMode)],
                "description": "How the launcher connects to its workers; ssh by default.",
            },
            "slotsPerWorker": {
                **schema_parts.int32(1),
                "description": "Processes per worker; by default its number of GPUs, or 1.",
            },
            "restartPolicy": {
                "type": "string",
                "enum": [RestartPolicy.NEVER.value, RestartPolicy.ON_FAILURE.value],
                "default": RestartPolicy.NEVER.value,
                "description": "Whether the whole job is restarted when its launcher fails.",
            },
            "backoffLimit": {
                **schema_parts.int32(0),
                "default": DEFAULT_BACKOFF_LIMIT,
                "description": "Maximum number of restarts of the job, or of its launcher alone.",
            },
            "cleanPodPolicy": _clean_pod_policy(),
            **policies,
            "runPolicy": {
                "type": "object",
                "description": "The same policies, in the place of Kubeflow's jobs.",
                "properties": {
                    "cleanPodPolicy": {"type": "string", "enum": ["", "All", "Running", "None"]},
                    **policies,
                    run_policy_field.STARTING_DEADLINE: run_policy_field.STARTING_DEADLINE_SCHEMA,
                    failure_policy_schema.FIELD: failure_policy_schema.schema([LAUNCHER, WORKER]),
                },
            },
        },
    }


def training_job_status_schema() -> JSON:
    schema = schema_parts.status_schema()
    names = {"type": "array", "nullable": True, "items": {"type": "string"}}
    more: JSON = {
        "phase": {
            "type": "string",
            "description": "Created, Running, Scaling, Succeeded, Failed or Suspended.",
        },
        "currentScaler": {
            "type": "string",
            "description": "The current scaler: ScaleIn:<namespace>/<name>, or ScaleOut.",
        },
        "restartCount": {
            "type": "integer",
            "format": "int32",
            "description": "How often the whole job was restarted.",
        },
        "targetWorkers": {**names, "description": "The pods of the desired workers."},
        "currentWorkers": {**names, "description": "The pods of the workers in the host file."},
    }
    return {**schema, "properties": {**more, **schema["properties"]}}


def root_rules(suffix_length: int) -> list[JSON]:
    """Return the rules for the whole job; ``suffix_length`` is that of its longest child name.

    They apply only to new jobs: at the root, rules are evaluated on every update.
    """
    longest = MAX_LENGTH - suffix_length
    return [
        {
            "rule": "oldSelf.hasValue() || has(self.spec)",
            "optionalOldSelf": True,
            "message": "spec is missing: add the specs of a launcher and a worker",
        },
        {
            "rule": f"oldSelf.hasValue() || self.metadata.name.size() <= {longest}",
            "optionalOldSelf": True,
            "message": f"metadata.name must have at most {longest} characters: the names of "
            f"workers, <name>-worker-<index>, may have {MAX_LENGTH}",
        },
    ]


def _replica_specs() -> JSON:
    replicas = {"minimum": 1, "type": "integer", "format": "int32"}
    # The launcher counts as well.
    bound = {**replicas, "maximum": MAX_REPLICAS - 1}
    launcher = {
        "replicas": {**replicas, "maximum": 1},
        "restartPolicy": _restart_policy(
            "Always, OnFailure and ExitCode restart the launcher after a retryable exit code; with "
            "Never the job also fails when the launcher's pod is deleted."
        ),
        "template": schema_parts.required_pod_template(),
    }
    worker = {
        "replicas": {**bound, "default": 1, "description": "Number of workers; 1 by default."},
        "minReplicas": {**bound, "description": "Minimum number of workers; 1 by default."},
        "maxReplicas": {**bound, "description": "Maximum number of workers; unlimited by default."},
        "restartPolicy": _restart_policy(
            "Which terminated workers are replaced: all (Always), failed ones (OnFailure), those "
            "with a retryable exit code (ExitCode); none by default."
        ),
        "backoffLimit": {
            **schema_parts.int32(0),
            "description": "Maximum number of replacements of a worker that never runs for long.",
        },
        "template": schema_parts.required_pod_template(),
    }
    return {
        "type": "object",
        **PRESERVE_UNKNOWN,
        "description": "The launcher, which determines the outcome, and the workers.",
        "required": [LAUNCHER, WORKER],
        "properties": {
            LAUNCHER: {
                "type": "object",
                "required": ["template"],
                "properties": launcher,
            },
            WORKER: {
                "type": "object",
                "required": ["template"],
                "properties": worker,
                "x-kubernetes-validations": [dict(rule) for rule in _BOUNDS_RULES],
            },
        },
    }


def _restart_policy(description: str) -> JSON:
    return {"type": "string", "enum": _RESTART_POLICIES, "description": description}


def _clean_pod_policy() -> JSON:
    # Any value: et-operator kept the pods for unknown ones.
    return {
        "type": "string",
        "description": "Which workers are deleted when the job has ended: All, Running (the "
        "default: those that still run) or None. The launcher is kept for its logs.",
    }


def _policies() -> JSON:
    return {
        "ttlSecondsAfterFinished": schema_parts.ttl(),
        "activeDeadlineSeconds": schema_parts.deadline(),
        "suspend": schema_parts.suspend(),
        "schedulingPolicy": schema_parts.scheduling_policy({}),
    }
