"""CEL rules of Kubeflow's kinds: the checks of v1's webhooks, and some that they lacked.

Rules on ``spec`` and below are only evaluated when it changes, so the status of jobs stored before
the rules can still be written. Rules at the root are evaluated on every update, so they must
compare with the old job themselves.
"""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.dialects.child_names import MAX_LENGTH
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.kubeflow.kind import KubeflowKind


def managed_by(spec: str) -> str:
    """Return the expression of a spec's ``managedBy``; absent, it is an empty string.

    Not an optional: the server cannot estimate the cost of those.
    """
    policy = f"{spec}.runPolicy"
    return f"(has({policy}) && has({policy}.managedBy) ? {policy}.managedBy : '')"


MANAGED_BY_IMMUTABLE: Final[JSON] = {
    "rule": f"{managed_by('self')} == {managed_by('oldSelf')}",
    "message": "field is immutable",
    "fieldPath": ".runPolicy.managedBy",
}


def replica_specs_required(field: str, former: str = "replicaSpecs") -> JSON:
    """Return the rule that a spec has its replica specs, or the field of a former form."""
    return {
        "rule": f"has(self.{field}) || has(self.{former})",
        "message": f"{field} is missing: give a spec for each type of replica",
    }


def child_name_length(field: str) -> JSON:
    """Return the rule at the root that limits the length of replica names.

    Stored jobs are exempt, so that the status of a job that breaks the rule can be written.
    """
    specs = f"self.spec.{field}"
    last = f"{specs}[t].?replicas.orValue(1) - 1"
    before = f"oldSelf.?spec.?{field}[?t]"
    return {
        "rule": f"!has({specs}) || {specs}.all(t, "
        f"self.metadata.name.size() + t.size() + string({last}).size() + 2 <= {MAX_LENGTH} || "
        f"{before}.hasValue() && {before}.?replicas == {specs}[t].?replicas)",
        "optionalOldSelf": True,
        "message": "metadata.name is too long: the names of replicas, "
        f"<name>-<type>-<index>, may have {MAX_LENGTH} characters",
    }


def worker_name_length(field: str) -> JSON:
    """Return the rule at the root that limits the names of workers.

    A stored job is exempt while it has the same workers, so that its status can be written.
    """
    count, old = (
        f"{job}.?spec.?{field}[?'Worker'].?replicas.orValue(1)" for job in ("self", "oldSelf")
    )
    return {
        "rule": "self.metadata.name.size() + '-worker-'.size() + "
        f"string({count} - 1).size() <= {MAX_LENGTH} || "
        f"oldSelf.hasValue() && {old} == {count}",
        "optionalOldSelf": True,
        "message": "metadata.name is too long: the names of workers, <name>-worker-<index>, "
        f"may have {MAX_LENGTH} characters",
    }


def replica_specs_rules(kind: KubeflowKind, *, case_insensitive: bool) -> list[JSON]:
    """Return the rules of the map of replica specs."""
    type_names = [kind.type_name(type_) for type_ in kind.replica_types]
    rules = [
        _known_types(kind, type_names, case_insensitive=case_insensitive),
        _max_replicas(),
    ]
    if case_insensitive:
        rules.append(
            {
                "rule": "self.all(a, self.exists_one(b, a.lowerAscii() == b.lowerAscii()))",
                "message": "a replica type is listed twice, in another case",
            }
        )
    for type_ in map(kind.type_name, kind.framework.singletons):
        rules.append(
            {
                "rule": f"'{type_}' in self",
                "message": f"{type_} is missing: there must be exactly 1",
            }
        )
        rules.append(at_most_one(type_))
    return rules


def at_most_one(type_: str) -> JSON:
    """Return the rule that a listed type has exactly one replica."""
    return {
        "rule": f"self[?'{type_}'].?replicas.orValue(1) == 1",
        "message": f"{type_}.replicas must be 1",
    }


def at_least_one(type_: str) -> JSON:
    return {
        "rule": f"self[?'{type_}'].?replicas.orValue(1) >= 1",
        "message": f"{type_}.replicas must be 1 or more",
    }


def container_required(kind: KubeflowKind) -> JSON:
    """Return the rule that a replica spec has the training container."""
    names = kind.container_names
    is_named = f"c.name == '{names[0]}'" if len(names) == 1 else f"c.name in {names}"
    path = "self.template.spec.containers"
    # Required fields may be missing in jobs stored before, and a rule that cannot be evaluated
    # fails even without a change.
    ancestors = ("self.template", "self.template.spec", path)
    missing = " || ".join(f"!has({step})" for step in ancestors)
    return {
        "rule": f"{missing} || {path}.exists(c, has(c.name) && {is_named})",
        "message": f"template.spec.containers has no container named {names[0]}: "
        "give that name to the one that trains",
    }


def _max_replicas() -> JSON:
    return {
        "rule": f"self.map(t, self[t].?replicas.orValue(1)).sum() <= {MAX_REPLICAS}",
        "message": f"a job may have at most {MAX_REPLICAS} replicas of all types together",
    }


def _known_types(kind: KubeflowKind, type_names: list[str], *, case_insensitive: bool) -> JSON:
    known = [*kind.replica_types, *kind.replicas.type_aliases] if case_insensitive else type_names
    shown = "t.lowerAscii()" if case_insensitive else "t"
    return {
        "rule": f"self.all(t, {shown} in {known})",
        "message": f"each replica type must be one of {', '.join(type_names)}"
        + ("" if case_insensitive else " (case-sensitive)"),
    }
