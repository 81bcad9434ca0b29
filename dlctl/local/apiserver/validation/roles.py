"""Validation of Roles and ClusterRoles, and defaults and validation of their bindings."""

from collections.abc import Iterator
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation import names

_SELECTORS: Final = "aggregationRule.clusterRoleSelectors"
_GROUP: Final = "rbac.authorization.k8s.io"
_NAMED_SUBJECTS: Final = ("User", "Group")
_SUBJECTS: Final = ("ServiceAccount", *_NAMED_SUBJECTS)


def role_errors(role: JSON) -> Iterator[FieldError]:
    return _rule_errors(role, is_namespaced=True)


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


def default_binding(binding: JSON) -> None:
    named = [each for each in binding.get("subjects", ()) if each.get("kind") in _NAMED_SUBJECTS]
    for each in (binding.setdefault("roleRef", {}), *named):
        each["apiGroup"] = each.get("apiGroup") or _GROUP


def role_binding_errors(binding: JSON) -> Iterator[FieldError]:
    return _binding_errors(binding, is_namespaced=True)


def cluster_role_binding_errors(binding: JSON) -> Iterator[FieldError]:
    return _binding_errors(binding, is_namespaced=False)


def binding_update_errors(old: JSON, new: JSON) -> list[FieldError]:
    role = old.get("roleRef", {})
    # Stored ones may be without a group.
    if {**role, "apiGroup": role.get("apiGroup") or _GROUP} == new["roleRef"]:
        return []
    return [FieldError.invalid("roleRef", new["roleRef"], "cannot change roleRef")]


def _binding_errors(binding: JSON, *, is_namespaced: bool) -> Iterator[FieldError]:
    role = binding["roleRef"]
    kinds = ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",)
    if role["apiGroup"] != _GROUP:
        yield FieldError.unsupported("roleRef.apiGroup", role["apiGroup"], (_GROUP,))
    if role.get("kind", "") not in kinds:
        yield FieldError.unsupported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield FieldError.required("roleRef.name")
    for why in names.path_segment(role.get("name", "")):
        yield FieldError.invalid("roleRef.name", role["name"], why)
    for index, subject in enumerate(binding.get("subjects", ())):
        path = f"subjects[{index}]"
        yield from _subject_errors(subject, path)
        is_account = subject.get("kind") == "ServiceAccount"
        if is_account and not is_namespaced and not subject.get("namespace"):
            yield FieldError.required(f"{path}.namespace")


def _subject_errors(subject: JSON, path: str) -> Iterator[FieldError]:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if not name:
        yield FieldError.required(f"{path}.name")
    elif kind == "ServiceAccount":
        yield from (FieldError.invalid(f"{path}.name", name, w) for w in names.dns_subdomain(name))
    if kind not in _SUBJECTS:
        yield FieldError.unsupported(f"{path}.kind", kind, _SUBJECTS)
        return
    group, wanted = subject.get("apiGroup", ""), "" if kind == "ServiceAccount" else _GROUP
    if group != wanted:
        yield FieldError.unsupported(f"{path}.apiGroup", group, (wanted,))
