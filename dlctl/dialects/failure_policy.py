"""The field ``failurePolicy`` of run policies: schema, reader, and its effect on replica specs.

The size of a CRD is limited: older versions of a form leave the checks to the reader. Forms without
run policies have it as JSON in an annotation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.job import Job, ReplicaSpec, SpecWarning
from dlctl.api.json_types import JSON
from dlctl.api.policies.failure_policy import (
    ExitCodes,
    FailureAction,
    FailurePolicy,
    FailureRule,
    RestartStrategy,
)
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.status.verdict import Cause
from dlctl.dialects.field_reader import MAX_INT32, FieldReader, parse_enum
from dlctl.dialects.pod_schema import PRESERVE_UNKNOWN
from dlctl.errors import InvalidJobError, quoted

FIELD: Final = "failurePolicy"
ANNOTATION: Final = "dlctl.dev/failure-policy"
ANNOTATION_FIELD: Final = f"metadata.annotations[{ANNOTATION}]"
# They bound the server's cost estimate of the rules.
MAX_RULES: Final = 20
_MAX_CONDITIONS: Final = 20
_MAX_TYPES: Final = 16
_MAX_NAME_CHARS: Final = 36
# The limits of batch/v1: the longest names of a container and a condition, the highest exit code.
_MAX_CONTAINER_CHARS: Final = 63
_MAX_CONDITION_CHARS: Final = 316
_MAX_EXIT_CODE: Final = 255
_OPERATORS: Final = ("In", "NotIn")
_STATUSES: Final = ("True", "False", "Unknown")
# A checkpoint of a large model is rarely written sooner.
_MIN_GRACE_S: Final = 60
_SECOND_LIMIT: Final = f"cannot be combined with {FIELD}: use its maxRestarts"
LIMIT_RULE: Final[JSON] = {
    "rule": f"!has(self.{FIELD}) || !has(self.backoffLimit)",
    "message": _SECOND_LIMIT,
    "fieldPath": ".backoffLimit",
}


# The schema for versions that leave the checks to the reader.
UNCHECKED_SCHEMA: Final[JSON] = {"type": "object", **PRESERVE_UNKNOWN}


def schema(types: Iterable[str]) -> JSON:
    """Return the schema, given the names of the replica types in lower case."""
    names = "self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && a.name == b.name))"
    return {
        "type": "object",
        "description": "What follows from a failure, instead of restart policies.",
        "properties": {
            "maxRestarts": {"type": "integer", "minimum": 0, "maximum": MAX_INT32},
            "restartStrategy": _one_of(*RestartStrategy),
            "rules": {
                **_list(MAX_RULES, _rule_schema(types)),
                "description": "The first one that matches decides.",
                "x-kubernetes-validations": [
                    {"rule": names, "message": "names of rules must be unique"}
                ],
            },
        },
    }


def _rule_schema(types: Iterable[str]) -> JSON:
    condition = {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "maxLength": _MAX_CONDITION_CHARS},
            "status": _one_of(*_STATUSES),
        },
    }
    type_ = {"type": "string", "pattern": f"^(?i:{'|'.join(types)})$"}
    return {
        "type": "object",
        "required": ["action"],
        "properties": {
            "name": {"type": "string", "maxLength": _MAX_NAME_CHARS},
            "action": _one_of(*FailureAction),
            "onExitCodes": _exit_codes_schema(),
            "onPodConditions": _list(_MAX_CONDITIONS, condition),
            "onCauses": _list(len(Cause), _one_of(*Cause)),
            "targetReplicas": _list(_MAX_TYPES, type_),
        },
    }


def _exit_codes_schema() -> JSON:
    exit_code = {"type": "integer", "minimum": 0, "maximum": _MAX_EXIT_CODE}
    return {
        "type": "object",
        "required": ["operator", "values"],
        "properties": {
            "containerName": {"type": "string", "maxLength": _MAX_CONTAINER_CHARS},
            "operator": _one_of(*_OPERATORS),
            "values": {**_list(_MAX_EXIT_CODE, exit_code), "minItems": 1},
        },
        "x-kubernetes-validations": [
            {
                "rule": "self.operator == 'NotIn' || !(0 in self.values)",
                "message": "0 is not a failure: remove it from values",
            }
        ],
    }


def _one_of(*values: str) -> JSON:
    return {"type": "string", "enum": list(map(str, values))}


def _list(max_items: int, items: JSON) -> JSON:
    return {"type": "array", "maxItems": max_items, "items": items}


def read(run_policy: FieldReader, types: Mapping[str, str]) -> FailurePolicy | None:
    """Read the policy; ``types`` are the replica types by their names in lower case.

    :raises InvalidJobError: naming the field and the fix.
    """
    if FIELD not in run_policy:
        return None
    if "backoffLimit" in run_policy:
        raise InvalidJobError(_SECOND_LIMIT, field=run_policy.path_of("backoffLimit"))
    return _read_policy(run_policy.object(FIELD), types)


def read_annotation(
    annotations: Mapping[str, str], types: Mapping[str, str]
) -> FailurePolicy | None:
    """Read the policy in a job's annotations, like :func:`read`.

    :raises InvalidJobError: naming the annotation and the fix.
    """
    if (text := annotations.get(ANNOTATION)) is None:
        return None
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"is not JSON: {error}; write the policy as a JSON object"
        raise InvalidJobError(message, field=ANNOTATION_FIELD) from error
    return _read_policy(FieldReader(decoded, ANNOTATION_FIELD), types)


def _read_policy(fields: FieldReader, types: Mapping[str, str]) -> FailurePolicy:
    rules = tuple(_read_rule(rule, types) for rule in _items(fields, "rules", MAX_RULES))
    names = [rule.name for rule in rules if rule.name]
    if len(names) > len(set(names)):
        message = "has two rules with the same name: rename one of them"
        raise InvalidJobError(message, field=fields.path_of("rules"))
    return FailurePolicy(
        max_restarts=fields.integer("maxRestarts", 0, maximum=MAX_INT32),
        restart_strategy=fields.enum(
            "restartStrategy", RestartStrategy, RestartStrategy.BLOCKING_RECREATE
        ),
        rules=rules,
    )


def _read_rule(rule: FieldReader, types: Mapping[str, str]) -> FailureRule:
    name = rule.string("name")
    if len(name) > _MAX_NAME_CHARS:
        message = f"has {len(name)} characters: shorten it to at most {_MAX_NAME_CHARS}"
        raise InvalidJobError(message, field=rule.path_of("name"))
    if "action" not in rule:
        raise InvalidJobError("has no action: give one", field=rule.path)
    return FailureRule(
        action=parse_enum(rule.string("action"), FailureAction, field=rule.path_of("action")),
        name=name,
        exit_codes=_read_exit_codes(rule.object("onExitCodes")) if "onExitCodes" in rule else None,
        pod_conditions=tuple(
            _read_condition(condition)
            for condition in _items(rule, "onPodConditions", _MAX_CONDITIONS)
        ),
        causes=frozenset(
            parse_enum(text, Cause, field=rule.path_of("onCauses"))
            for text in _strings(rule, "onCauses", len(Cause))
        ),
        target_replicas=frozenset(
            _read_type(text, types, rule.path_of("targetReplicas"))
            for text in _strings(rule, "targetReplicas", _MAX_TYPES)
        ),
    )


def _read_exit_codes(fields: FieldReader) -> ExitCodes:
    if not fields.string("operator"):
        raise InvalidJobError("has no operator: give In or NotIn", field=fields.path)
    operator, path = fields.choice("operator", _OPERATORS), fields.path_of("values")
    if "values" not in fields:
        raise InvalidJobError("has no values: list the exit codes", field=fields.path)
    # Jobs that are stored already may have an empty list, which servers take no more.
    values = _list_of(fields, "values", _MAX_EXIT_CODE)
    for value in values:
        # In Python a bool is an int, but ``true`` does not mean 1.
        if type(value) is not int or not 0 <= value <= _MAX_EXIT_CODE:
            message = f"has {quoted(value)}, but exit codes must be from 0 to {_MAX_EXIT_CODE}"
            raise InvalidJobError(message, field=path)
    if operator == "In" and 0 in values:
        raise InvalidJobError("has 0, which is not a failure: remove it", field=path)
    return ExitCodes(frozenset(values), operator == "NotIn", fields.string("containerName"))


def _read_condition(fields: FieldReader) -> tuple[str, str]:
    if not (type_ := fields.string("type")):
        raise InvalidJobError("has no type: name a pod condition", field=fields.path)
    return type_, fields.choice("status", _STATUSES, _STATUSES[0])


def _read_type(text: str, types: Mapping[str, str], path: str) -> str:
    if text.lower() not in types:
        names = ", ".join(dict.fromkeys(map(str.capitalize, types.values())))
        message = f"has {quoted(text)}, which is not a replica type: use only {names}"
        raise InvalidJobError(message, field=path)
    return types[text.lower()]


def _items(fields: FieldReader, name: str, maximum: int) -> Iterator[FieldReader]:
    given = _list_of(fields, name, maximum)
    return (FieldReader(each, f"{fields.path_of(name)}[{i}]") for i, each in enumerate(given))


def _strings(fields: FieldReader, name: str, maximum: int) -> Sequence[str]:
    given = _list_of(fields, name, maximum)
    if not all(isinstance(each, str) for each in given):
        raise InvalidJobError("must be a list of strings", field=fields.path_of(name))
    return given


def _list_of(fields: FieldReader, name: str, maximum: int) -> list[Any]:
    given = fields.value(name)
    if given is None:
        return []
    if not isinstance(given, list):
        message = f"must be a list, not {quoted(given)}"
        raise InvalidJobError(message, field=fields.path_of(name))
    if len(given) > maximum:
        message = f"has {len(given)} entries: leave at most {maximum}"
        raise InvalidJobError(message, field=fields.path_of(name))
    return given


def with_failure_policy(job: Job) -> Job:
    """Return the job with what its failure policy changes: it decides, and not the kubelet."""
    if not job.has_failure_policy:
        return job
    elasticity = job.elasticity
    if elasticity is not None:
        elasticity = attrs.evolve(elasticity, job_restart_limit=0, requires_launcher=False)
    return attrs.evolve(
        job,
        replica_specs=tuple(
            _without_restarts(spec) if job.failure_policy_decides(spec.type) else spec
            for spec in job.replica_specs
        ),
        elasticity=elasticity,
        warnings=(*job.warnings, *_grace_warning(job)),
    )


def restart_policy_warnings(
    run_policy: FieldReader, policies: Mapping[str, str]
) -> Iterator[SpecWarning]:
    """Yield a warning if types have a restart policy that the failure policy overrides."""
    overridden = [name for name, policy in policies.items() if policy not in ("", "Never")]
    if overridden and FIELD in run_policy:
        message = (
            f"{', '.join(overridden)}: the restart policy has no effect, because "
            f"runPolicy.{FIELD} decides about failures"
        )
        yield SpecWarning("RestartPolicyIgnored", message)


def _without_restarts(spec: ReplicaSpec) -> ReplicaSpec:
    pod_spec = {**spec.template["spec"], "restartPolicy": "Never"}
    template = {**spec.template, "spec": pod_spec}
    # No failure is permanent by itself: the policy decides.
    return attrs.evolve(spec, template=template, retry_policy=RetryPolicy.ALL)


def _grace_warning(job: Job) -> Iterator[SpecWarning]:
    short = [
        f"{spec.type} {spec.grace_period_s} s"
        for spec in job.replica_specs
        if spec.grace_period_s < _MIN_GRACE_S
    ]
    if short:
        message = (
            f"terminationGracePeriodSeconds is short ({', '.join(short)}): programs that save a "
            f"checkpoint when their job restarts may need {_MIN_GRACE_S} s or more"
        )
        yield SpecWarning("ShortGracePeriod", message)
