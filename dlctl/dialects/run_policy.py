"""The field ``runPolicy``, which Kubeflow's job kinds share: its schema, and how it is read."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from dlctl.api.gangs import SchedulingPolicy
from dlctl.api.job import CleanPodPolicy, RunPolicy
from dlctl.api.quantities import QuantityError, canonical
from dlctl.dialects.wire import Fields
from dlctl.errors import InvalidJobError, shown

JSON = dict[str, Any]
# What fits an int32, as everywhere in Kubernetes where seconds are counted.
_MOST: Final = 2**31 - 1
# Before there was a run policy, most of it stood in the spec itself.
ONCE_IN_SPEC: Final = (
    "activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "ttlSecondsAfterFinished",
)  # fmt: skip


def read(
    fields: Fields, clean_pod_policy: CleanPodPolicy, *, in_spec: Collection[str] = ()
) -> RunPolicy:
    """Read the run policy of a spec; ``clean_pod_policy`` holds unless it says otherwise.

    What is named by ``in_spec`` is looked for in the spec itself, too.
    """
    policy = fields.object("runPolicy")

    def where(name: str) -> Fields:
        return fields if name in in_spec and name not in policy else policy

    clean = where("cleanPodPolicy").choice("cleanPodPolicy", CleanPodPolicy, clean_pod_policy)
    ttl, deadline, limit = "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"
    return RunPolicy(
        clean_pod_policy=clean,
        ttl_s=where(ttl).optional_integer(ttl, most=_MOST),
        deadline_s=where(deadline).optional_integer(deadline, least=1, most=_MOST),
        backoff_limit=where(limit).optional_integer(limit, most=_MOST),
        suspended=where("suspend").boolean("suspend", default=False),
        scheduling=_scheduling(where("schedulingPolicy").object("schedulingPolicy")),
    )


def _scheduling(policy: Fields) -> SchedulingPolicy:
    return SchedulingPolicy(
        least=policy.optional_integer("minAvailable", most=_MOST),
        queue=policy.text("queue"),
        resources=_amounts(policy.object("minResources")),
        priority_class=policy.text("priorityClass"),
        timeout_s=policy.optional_integer("scheduleTimeoutSeconds", most=_MOST),
    )


def _amounts(resources: Fields) -> Mapping[str, str]:
    amounts = {}
    for name in resources.names():
        value = resources.value(name)
        try:
            amounts[name] = canonical(str(value))
        except QuantityError as error:
            raise InvalidJobError(
                f"is {shown(value)}: {error}", field=resources.at(name)
            ) from error
    return amounts


def schema() -> JSON:
    return {
        "type": "object",
        "description": "When the job runs, and what becomes of it afterwards.",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "cleanPodPolicy": {
                "type": "string",
                "description": "Which pods are deleted when the job has ended: All, Running, None.",
                "pattern": "^(?i:|All|Running|None)$",
            },
            "ttlSecondsAfterFinished": _number(
                "Seconds after its end when the job itself is deleted; never, if left out.", 0
            ),
            "activeDeadlineSeconds": _number("Seconds after its start when the job fails.", 1),
            "backoffLimit": _number(
                "So many failures of all replicas together fail the job; no limit, if left out.", 0
            ),
            "suspend": {
                "type": "boolean",
                "description": "Whether the job is to have no pods for the time being.",
            },
        },
    }


def _number(description: str, least: int) -> JSON:
    return {
        "type": "integer",
        "format": "int32",
        "minimum": least,
        "description": description,
    }
