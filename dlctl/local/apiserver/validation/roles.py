"""Validation of Roles and ClusterRoles: their rules, and which others a ClusterRole aggregates."""

from collections.abc import Iterator

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation import names

_SELECTORS = "aggregationRule.clusterRoleSelectors"


def role_errors(role: JSON) -> list[FieldError]:
    return list(_rule_errors(role, is_namespaced=True))


def cluster_role_errors(role: JSON) -> list[FieldError]:
    return [*_rule_errors(role, is_namespaced=False), *_aggregation_errors(role)]


def _rule_errors(role: JSON, *, is_namespaced: bool) -> Iterator[FieldError]:
    for index, rule in enumerate(role.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            yield FieldError.required(f"{path}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            yield from _path_errors(rule, f"{path}.nonResourceURLs", is_namespaced=is_namespaced)
            continue
        if not rule.get("apiGroups"):
            detail = "resource rules must supply at least one api group"
            yield FieldError.required(f"{path}.apiGroups", detail)
        if not rule.get("resources"):
            detail = "resource rules must supply at least one resource"
            yield FieldError.required(f"{path}.resources", detail)


def _path_errors(rule: JSON, field: str, *, is_namespaced: bool) -> Iterator[FieldError]:
    urls = rule["nonResourceURLs"]
    if is_namespaced:
        detail = "namespaced rules cannot apply to non-resource URLs"
        yield FieldError.invalid(field, urls, detail)
    if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        yield FieldError.invalid(field, urls, detail)


def _aggregation_errors(role: JSON) -> Iterator[FieldError]:
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return
    selectors = aggregation.get("clusterRoleSelectors")
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield FieldError.required(_SELECTORS, detail)
    for index, selector in enumerate(selectors or ()):
        yield from _selector_errors(selector, f"{_SELECTORS}[{index}]")


def _selector_errors(selector: JSON, path: str) -> Iterator[FieldError]:
    for key, value in (selector.get("matchLabels") or {}).items():
        field = f"{path}.matchLabels"
        yield from (FieldError.invalid(field, key, why) for why in names.qualified_name(key))
        yield from (FieldError.invalid(field, value, why) for why in names.label_value(value))
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement_errors(each, f"{path}.matchExpressions[{index}]")


def _requirement_errors(requirement: JSON, path: str) -> Iterator[FieldError]:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values = requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            yield FieldError.required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield FieldError.forbidden(f"{path}.values", detail)
    else:
        detail = "not a valid selector operator"
        yield FieldError.invalid(f"{path}.operator", operator, detail)
    yield from (FieldError.invalid(f"{path}.key", key, why) for why in names.qualified_name(key))
    for index, value in enumerate(values):
        for why in names.label_value(value):
            yield FieldError.invalid(f"{path}.values[{index}]", value, why)
