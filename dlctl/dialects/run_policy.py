"""The field ``runPolicy`` of Kubeflow's kinds: schema and reader."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from dlctl.api.gangs import SchedulingPolicy
from dlctl.api.job import CleanPodPolicy, RunPolicy
from dlctl.api.quantities import QuantityError, canonicalize
from dlctl.dialects import schema_parts
from dlctl.dialects.field_reader import FieldReader
from dlctl.errors import InvalidJobError, quoted

JSON = dict[str, Any]
# An int32, like all seconds in Kubernetes.
_MAX_INT32: Final = 2**31 - 1
# Before runPolicy existed, most of its fields were in the spec itself.
LEGACY_SPEC_FIELDS: Final = (
    "activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "ttlSecondsAfterFinished",
)  # fmt: skip


def read(
    fields: FieldReader, clean_pod_policy: CleanPodPolicy, *, spec_fields: Collection[str] = ()
) -> RunPolicy:
    """Read the run policy of a spec; ``clean_pod_policy`` is the default.

    Fields named by ``spec_fields`` may also be in the spec itself.
    """
    policy = fields.object("runPolicy")

    def where(name: str) -> FieldReader:
        return fields if name in spec_fields and name not in policy else policy

    clean = where("cleanPodPolicy").enum("cleanPodPolicy", CleanPodPolicy, clean_pod_policy)
    ttl, deadline, limit = "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"
    return RunPolicy(
        clean_pod_policy=clean,
        ttl_after_finished_s=where(ttl).optional_integer(ttl, maximum=_MAX_INT32),
        active_deadline_s=where(deadline).optional_integer(deadline, minimum=1, maximum=_MAX_INT32),
        backoff_limit=where(limit).optional_integer(limit, maximum=_MAX_INT32),
        suspended=where("suspend").boolean("suspend", default=False),
        scheduling_policy=_read_scheduling_policy(
            where("schedulingPolicy").object("schedulingPolicy")
        ),
    )


def suspension_patch(suspended: bool) -> JSON:
    return {"spec": {"runPolicy": {"suspend": suspended}}}


def _read_scheduling_policy(policy: FieldReader) -> SchedulingPolicy:
    return SchedulingPolicy(
        min_available=policy.optional_integer("minAvailable", maximum=_MAX_INT32),
        queue=policy.string("queue"),
        min_resources=_read_quantities(policy.object("minResources")),
        priority_class=policy.string("priorityClass"),
        schedule_timeout_s=policy.optional_integer("scheduleTimeoutSeconds", maximum=_MAX_INT32),
    )


def _read_quantities(resources: FieldReader) -> Mapping[str, str]:
    quantities = {}
    for name in resources.names():
        value = resources.value(name)
        try:
            quantities[name] = canonicalize(str(value))
        except QuantityError as error:
            raise InvalidJobError(
                f"is {quoted(value)}: {error}", field=resources.path_of(name)
            ) from error
    return quantities


def schema() -> JSON:
    return {
        "type": "object",
        "description": "When the job runs, and its clean-up.",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "cleanPodPolicy": {
                "type": "string",
                "description": "Which pods are deleted when the job has ended: All, Running, None.",
                "pattern": "^(?i:|All|Running|None)$",
            },
            "ttlSecondsAfterFinished": {
                **schema_parts.int32(0),
                "description": "Seconds from the end of the job to its deletion; never by default.",
            },
            "activeDeadlineSeconds": {
                **schema_parts.int32(1),
                "description": "Seconds from start to failure of the job.",
            },
            "backoffLimit": {
                **schema_parts.int32(0),
                "description": "Number of failures of all replicas that fails the job; unlimited "
                "by default.",
            },
            "suspend": {
                "type": "boolean",
                "description": "Whether the job is suspended: it has no pods.",
            },
        },
    }
