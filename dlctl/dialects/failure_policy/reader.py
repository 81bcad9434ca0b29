"""Reads the failure policy of a job.

Forms without run policies have it as JSON in an annotation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from dlctl.api.policies.failure_policy import (
    ExitCodes,
    FailureAction,
    FailurePolicy,
    FailureRule,
    RestartStrategy,
)
from dlctl.api.status.verdict import Cause
from dlctl.dialects.failure_policy.schema import (
    FIELD,
    MAX_CONDITIONS,
    MAX_EXIT_CODE,
    MAX_NAME_CHARS,
    MAX_RULES,
    MAX_TYPES,
    OPERATORS,
    SECOND_LIMIT,
    STATUSES,
)
from dlctl.dialects.field_reader import MAX_INT32, FieldReader, parse_enum
from dlctl.errors import InvalidJobError, quoted

ANNOTATION: Final = "dlctl.dev/failure-policy"
ANNOTATION_FIELD: Final = f"metadata.annotations[{ANNOTATION}]"


def read(run_policy: FieldReader, types: Mapping[str, str]) -> FailurePolicy | None:
    """Read the policy; ``types`` are the replica types by their names in lower case.

    :raises InvalidJobError: naming the field and the fix.
    """
    if FIELD not in run_policy:
        return None
    if "backoffLimit" in run_policy:
        raise InvalidJobError(SECOND_LIMIT, field=run_policy.path_of("backoffLimit"))
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
    if len(name) > MAX_NAME_CHARS:
        message = f"has {len(name)} characters: shorten it to at most {MAX_NAME_CHARS}"
        raise InvalidJobError(message, field=rule.path_of("name"))
    if "action" not in rule:
        raise InvalidJobError("has no action: give one", field=rule.path)
    return FailureRule(
        action=parse_enum(rule.string("action"), FailureAction, field=rule.path_of("action")),
        name=name,
        exit_codes=_read_exit_codes(rule.object("onExitCodes")) if "onExitCodes" in rule else None,
        pod_conditions=tuple(
            _read_condition(condition)
            for condition in _items(rule, "onPodConditions", MAX_CONDITIONS)
        ),
        causes=frozenset(
            parse_enum(text, Cause, field=rule.path_of("onCauses"))
            for text in _strings(rule, "onCauses", len(Cause))
        ),
        target_replicas=frozenset(
            _read_type(text, types, rule.path_of("targetReplicas"))
            for text in _strings(rule, "targetReplicas", MAX_TYPES)
        ),
    )


def _read_exit_codes(fields: FieldReader) -> ExitCodes:
    if not fields.string("operator"):
        raise InvalidJobError("has no operator: give In or NotIn", field=fields.path)
    operator, path = fields.choice("operator", OPERATORS), fields.path_of("values")
    if "values" not in fields:
        raise InvalidJobError("has no values: list the exit codes", field=fields.path)
    # Jobs that are stored already may have an empty list, which servers take no more.
    values = _list_of(fields, "values", MAX_EXIT_CODE)
    for value in values:
        # In Python a bool is an int, but ``true`` does not mean 1.
        if type(value) is not int or not 0 <= value <= MAX_EXIT_CODE:
            message = f"has {quoted(value)}, but exit codes must be from 0 to {MAX_EXIT_CODE}"
            raise InvalidJobError(message, field=path)
    if operator == "In" and 0 in values:
        raise InvalidJobError("has 0, which is not a failure: remove it", field=path)
    return ExitCodes(frozenset(values), operator == "NotIn", fields.string("containerName"))


def _read_condition(fields: FieldReader) -> tuple[str, str]:
    if not (type_ := fields.string("type")):
        raise InvalidJobError("has no type: name a pod condition", field=fields.path)
    return type_, fields.choice("status", STATUSES, STATUSES[0])


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
