"""The schema of TrainingJob: what can be checked at admission is, with no webhook.

What was stored under et-operator's, which checked next to nothing, can still have its status
written.
"""

from typing import Any, Final

from dlctl.api.elastic import LAUNCHER, WORKER, AttachMode
from dlctl.dialects.child_names import MAX_LENGTH
from dlctl.dialects.et_operator.policies import DEFAULT_BACKOFF_LIMIT
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.kubeflow import replica_map_schema
from dlctl.dialects.restart_policy import RestartPolicy

JSON = dict[str, Any]
_PRESERVE_UNKNOWN: Final = {"x-kubernetes-preserve-unknown-fields": True}
_RESTART_POLICIES: Final = ["", *(policy.value for policy in RestartPolicy)]
_BOUNDS_RULES: Final = (
    {
        "rule": "self.?minReplicas.orValue(1) <= self.?replicas.orValue(1)",
        "message": "minReplicas must not be more than replicas",
        "fieldPath": ".minReplicas",
    },
    {
        "rule": f"self.?replicas.orValue(1) <= self.?maxReplicas.orValue({MAX_REPLICAS})",
        "message": "replicas must not be more than maxReplicas",
        "fieldPath": ".replicas",
    },
)


def training_job_spec_schema() -> JSON:
    policies = _policies()
    return {
        "type": "object",
        "description": "What the job consists of and what becomes of it.",
        "required": ["etReplicaSpecs"],
        "properties": {
            "etReplicaSpecs": _replica_specs(),
            "launcherAttachMode": {
                "type": "string",
                "enum": ["", *(mode.value for mode in AttachMode)],
                "description": "How the launcher reaches its workers; ssh if left out.",
            },
            "slotsPerWorker": {
                **replica_map_schema.int32(1),
                "description": "Processes that a worker has room for; its GPUs, or 1, if left out.",
            },
            "restartPolicy": {
                "type": "string",
                "enum": [RestartPolicy.NEVER.value, RestartPolicy.ON_FAILURE.value],
                "default": RestartPolicy.NEVER.value,
                "description": "Whether the whole job is run again when its launcher fails.",
            },
            "backoffLimit": {
                **replica_map_schema.int32(0),
                "default": DEFAULT_BACKOFF_LIMIT,
                "description": "So often the job, or its launcher alone, is run again.",
            },
            "cleanPodPolicy": _clean_pod_policy(),
            **policies,
            "runPolicy": {
                "type": "object",
                "description": "The same policies where Kubeflow's jobs have them.",
                "properties": {
                    "cleanPodPolicy": {"type": "string", "enum": ["", "All", "Running", "None"]},
                    **policies,
                },
            },
        },
    }


def training_job_status_schema() -> JSON:
    schema = replica_map_schema.status_schema()
    names = {"type": "array", "nullable": True, "items": {"type": "string"}}
    more: JSON = {
        "phase": {
            "type": "string",
            "description": "Created, Running, Scaling, Succeeded, Failed or Suspended.",
        },
        "currentScaler": {
            "type": "string",
            "description": "What scales the job: ScaleIn:<namespace>/<name>, or ScaleOut.",
        },
        "restartCount": {
            "type": "integer",
            "format": "int32",
            "description": "How often the whole job was run again.",
        },
        "targetWorkers": {**names, "description": "The pods of the workers it is to have."},
        "currentWorkers": {**names, "description": "Those of the workers in the host file."},
    }
    return {**schema, "properties": {**more, **schema["properties"]}}


def root_rules(suffix_length: int) -> list[JSON]:
    """Return the rules for the whole job; its name has so much after it in the longest of names.

    They hold for new jobs alone: at the root nothing is ever unchanged.
    """
    longest = MAX_LENGTH - suffix_length
    return [
        {
            "rule": "oldSelf.hasValue() || has(self.spec)",
            "optionalOldSelf": True,
            "message": "spec is missing: give specs of a launcher and a worker",
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
    # The launcher counts, too.
    bound = {**replicas, "maximum": MAX_REPLICAS - 1}
    launcher = {
        "replicas": {**replicas, "maximum": 1},
        "restartPolicy": _restart_policy(
            "Always, OnFailure and ExitCode run the launcher again if its exit code says that it "
            "may be of use; with Never the job fails also when the launcher's pod is deleted."
        ),
        "template": replica_map_schema.required_pod_template(),
    }
    worker = {
        "replicas": {**bound, "default": 1, "description": "How many; 1 if left out."},
        "minReplicas": {**bound, "description": "The fewest there may be; 1 if left out."},
        "maxReplicas": {**bound, "description": "The most there may be; any, if left out."},
        "restartPolicy": _restart_policy(
            "Which workers that end are replaced: Always all, OnFailure those that fail, ExitCode "
            "those whose exit code says that it may be of use; none, if left out."
        ),
        "backoffLimit": {
            **replica_map_schema.int32(0),
            "description": "So often a worker is replaced that does not run for long.",
        },
        "template": replica_map_schema.required_pod_template(),
    }
    return {
        "type": "object",
        **_PRESERVE_UNKNOWN,
        "description": "The launcher, whose end is the job's, and the workers.",
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
    # Any word: those that et-operator did not know kept the pods.
    return {
        "type": "string",
        "description": "Which workers go when the job has ended: All, Running (those that have "
        "not ended, also if left out) or None. The launcher stays for its logs.",
    }


def _policies() -> JSON:
    return {
        "ttlSecondsAfterFinished": {
            **replica_map_schema.int32(0),
            "description": "Seconds after its end when the job is deleted; never, if left out.",
        },
        "activeDeadlineSeconds": {
            **replica_map_schema.int32(1),
            "description": "Seconds after its start when the job fails.",
        },
        "suspend": {
            "type": "boolean",
            "description": "Whether the job is to have no pods for the time being.",
        },
        "schedulingPolicy": replica_map_schema.scheduling_policy({}),
    }
