"""Conditions of a CRD, computed from its names and those of others.

Pure functions; ``controller`` decides when to call them.
"""

from collections.abc import Iterable

from dlctl.api.json_types import JSON


def updated_status(crd: JSON, taken: tuple[set[str], set[str]], now: str) -> JSON:
    """Return the status with the accepted names and conditions, given the names of others."""
    status: JSON = crd["status"]
    wanted, accepted = crd["spec"]["names"], status.get("acceptedNames", {})
    plurals, kinds = taken
    requests = [
        ("Plural", [wanted["plural"]], plurals),
        ("Singular", [wanted["singular"]], plurals),
        ("ShortNames", wanted.get("shortNames", []), plurals),
        ("Kind", [wanted["kind"]], kinds),
        ("ListKind", [wanted["listKind"]], kinds),
    ]
    conditions = status.get("conditions") or []
    conflicts = [
        (f"{title}Conflict", f'"{name}" is already in use')
        for title, names, used in requests
        for name in names
        if name in used
    ]
    if conflicts:
        reason, message = conflicts[-1]
        conditions = with_condition(
            conditions, condition("NamesAccepted", False, reason, message, now)
        )
        if not any(each.get("type") == "Established" for each in conditions):
            rejected = ("Established", False, "NotAccepted", "not all names are accepted")
            conditions = with_condition(conditions, condition(*rejected, now))
        return status | {"conditions": conditions, "acceptedNames": accepted}
    good = ("NamesAccepted", True, "NoConflicts", "no conflicts found")
    conditions = with_condition(conditions, condition(*good, now))
    done = ("Established", True, "InitialNamesAccepted", "the initial names have been accepted")
    conditions = with_condition(conditions, condition(*done, now))
    return status | {"conditions": conditions, "acceptedNames": wanted}


def condition(type_: str, holds: bool, reason: str, message: str, now: str) -> JSON:
    return {
        "type": type_,
        "status": "True" if holds else "False",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def with_condition(conditions: Iterable[JSON], new: JSON) -> list[JSON]:
    """Return the conditions with the new one; an equal old one is kept."""
    kept, found = [], False
    for each in conditions:
        if each.get("type") != new["type"]:
            kept.append(each)
            continue
        found = True
        same = each.get("status") == new["status"] and each.get("reason") == new["reason"]
        kept.append(each if same else new)
    return kept if found else [*kept, new]
