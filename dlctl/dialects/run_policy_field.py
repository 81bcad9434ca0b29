"""The field ``runPolicy`` of Kubeflow's kinds: schema and reader."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.api.policies.scheduling_policy import SchedulingPolicy
from dlctl.api.quantities import QuantityError, canonicalize
from dlctl.dialects import schema_parts
from dlctl.dialects.failure_policy import reader as failure_policy_reader
from dlctl.dialects.failure_policy import schema as failure_policy_schema
from dlctl.dialects.field_reader import MAX_INT32, FieldReader
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN
from dlctl.errors import InvalidJobError, quoted

STARTING_DEADLINE: Final = "startingDeadlineSeconds"
STARTING_DEADLINE_SCHEMA: Final = {
    **schema_parts.int32(1),
    "description": "Seconds from creation or resumption until the job must run; or it fails.",
}
# Before runPolicy existed, most of its fields were in the spec itself.
LEGACY_SPEC_FIELDS: Final = (
    "activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "ttlSecondsAfterFinished",
)  # fmt: skip


def read(
    fields: FieldReader,
    clean_pod_policy: CleanPodPolicy,
    types: Mapping[str, str],
    *,
    spec_fields: Collection[str] = (),
) -> RunPolicy:
    """Read the run policy of a spec; ``clean_pod_policy`` is the default.

    ``types`` are the replica types by their names in lower case. Fields named by ``spec_fields``
    may also be in the spec itself.
    """
    policy = fields.object("runPolicy")

    def reader_of(name: str) -> FieldReader:
        return fields if name in spec_fields and name not in policy else policy

    clean = reader_of("cleanPodPolicy").enum("cleanPodPolicy", CleanPodPolicy, clean_pod_policy)
    failures = failure_policy_reader.read(policy, types)
    ttl, deadline, limit = "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"
    return RunPolicy(
        clean_pod_policy=clean,
        ttl_after_finished_s=reader_of(ttl).optional_integer(ttl, maximum=MAX_INT32),
        active_deadline_s=reader_of(deadline).optional_integer(
            deadline, minimum=1, maximum=schema_parts.MAX_DEADLINE_S
        ),
        backoff_limit=reader_of(limit).optional_integer(limit, maximum=MAX_INT32)
        if failures is None
        else None,
        suspended=reader_of("suspend").boolean("suspend", default=False),
        scheduling_policy=_read_scheduling_policy(
            reader_of("schedulingPolicy").object("schedulingPolicy")
        ),
        failure_policy=failures,
        starting_deadline_s=policy.optional_integer(
            STARTING_DEADLINE, minimum=1, maximum=MAX_INT32
        ),
    )


def suspension_patch(
    fields: FieldReader, suspended: bool, *, spec_fields: Collection[str] = ()
) -> JSON:
    """Return the merge patch of the field that a job with such a spec uses, in its spelling."""
    policy = fields.object("runPolicy")
    if "suspend" in spec_fields and "suspend" not in policy:
        return {"spec": {fields.original_name("suspend"): suspended}}
    field = {policy.original_name("suspend"): suspended}
    return {"spec": {fields.original_name("runPolicy"): field}}


def _read_scheduling_policy(policy: FieldReader) -> SchedulingPolicy:
    return SchedulingPolicy(
        min_available=policy.optional_integer("minAvailable", maximum=MAX_INT32),
        queue=policy.string("queue"),
        min_resources=_read_quantities(policy),
        priority_class=policy.string("priorityClass"),
        schedule_timeout_s=policy.optional_integer("scheduleTimeoutSeconds", maximum=MAX_INT32),
    )


def _read_quantities(policy: FieldReader) -> Mapping[str, str] | None:
    if "minResources" not in policy:
        return None
    resources, quantities = policy.object("minResources"), {}
    for name in resources.names():
        value = resources.value(name)
        try:
            quantities[name] = canonicalize(str(value))
        except QuantityError as error:
            raise InvalidJobError(
                f"is {quoted(value)}: {error}", field=resources.path_of(name)
            ) from error
    return quantities


def schema(types: Iterable[str]) -> JSON:
    """Return the schema, given the names of the replica types in lower case."""
    return {
        "type": "object",
        "description": "When the job runs, and its clean-up.",
        **PRESERVE_UNKNOWN,
        "properties": {
            "cleanPodPolicy": {
                "type": "string",
                "description": "Which pods are deleted when the job has ended: All, Running, None.",
                "pattern": "^(?i:|All|Running|None)$",
            },
            "ttlSecondsAfterFinished": schema_parts.ttl(),
            "activeDeadlineSeconds": schema_parts.deadline(),
            STARTING_DEADLINE: STARTING_DEADLINE_SCHEMA,
            "backoffLimit": {
                **schema_parts.int32(0),
                "description": "Number of failures of all replicas that fails the job; unlimited "
                "by default.",
            },
            "suspend": schema_parts.suspend(),
            failure_policy_schema.FIELD: failure_policy_schema.schema(types),
        },
        "x-kubernetes-validations": [failure_policy_schema.LIMIT_RULE],
    }
