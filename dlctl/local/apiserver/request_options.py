"""Options of a request, from its query and, for deletions, its body.

Invalid ones are rejected with kube-apiserver's messages; nothing is looked up.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Self

import attrs
import msgspec

from dlctl.api.meta import UID, Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.status import FieldError

_VALIDATIONS: Final = ("Ignore", "Warn", "Strict")
_MANAGER_BYTES: Final = 128
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_INT64: Final = range(-(2**63), 2**63)
_UINT64: Final = range(2**64)
_MAX_DIGITS: Final = 20
_PROPAGATIONS: Final = ("Foreground", "Background", "Orphan")


def _options(kind: str) -> Resource:
    return Resource("meta.k8s.io", "v1", "", kind)


def _reject(kind: str, errors: Sequence[FieldError]) -> None:
    if errors:
        raise status.invalid(_options(kind), "", errors)


def integer(query: Mapping[str, str], name: str) -> int | None:
    """Return the value of a parameter, or None if it is absent or empty."""
    text = query.get(name, "")
    if not text:
        return None
    try:
        return _parsed(text, "ParseInt", _INT64)
    except ValueError as error:
        raise status.bad_request(str(error)) from None


def _parsed(text: str, function: str, allowed: range) -> int:
    """Return a number; raise ValueError with the message of the real server's function."""
    problem = "invalid syntax"
    if _NUMBER.fullmatch(text) and (allowed.start or text.isdecimal()):
        digits = text.lstrip("+-0") or "0"
        # Python does not even read thousands of digits.
        value = int(digits[:_MAX_DIGITS]) * (-1 if text.startswith("-") else 1)
        if len(digits) <= _MAX_DIGITS and value in allowed:
            return value
        problem = "value out of range"
    raise ValueError(f'strconv.{function}: parsing "{text}": {problem}')


def boolean(query: Mapping[str, str], name: str) -> bool | None:
    if name not in query:
        return None
    # As in Kubernetes' query decoder: a parameter without a value is true.
    return query[name].lower() not in ("false", "0")


def parse_version(text: str) -> int:
    """Return a resource version as a number; an empty one is 0."""
    if not text:
        return 0
    try:
        return _parsed(text, "ParseUint", _UINT64)
    except ValueError as error:
        message = FieldError.invalid("resourceVersion", text, str(error)).message
        raise status.bad_request(f"invalid resource version: resourceVersion: {message}") from None


def parse_object_version(text: str, field: str = "") -> int:
    """Return the resource version of an object; an invalid one is an internal error."""
    try:
        return _parsed(text or "0", "ParseUint", _UINT64)
    except ValueError as error:
        message = (
            f"{field}: {FieldError.invalid(field, text, str(error)).message}"
            if field
            else str(error)
        )
        raise status.StatusError(500, "", message) from None


@attrs.frozen
class WriteRequestOptions:
    """Options of a create, update or patch."""

    dry_run: bool = False
    field_validation: str = ""
    field_manager: str = ""
    force: bool = False

    @classmethod
    def read(
        cls, query: Mapping[str, str], dry_run: Sequence[str], kind: str, *, applies: bool = False
    ) -> Self:
        validation, manager = query.get("fieldValidation", ""), query.get("fieldManager", "")
        force = boolean(query, "force")
        errors = list(_manager_errors(manager, applies=applies))
        if force is not None and kind == "PatchOptions" and not applies:
            detail = "may not be specified for non-apply patch"
            errors.append(FieldError.forbidden("force", detail))
        errors += _dry_run_errors(dry_run)
        if validation not in ("", *_VALIDATIONS):
            errors.append(
                FieldError.unsupported("fieldValidation", validation, sorted(["", *_VALIDATIONS]))
            )
        _reject(kind, errors)
        return cls(bool(dry_run), validation, manager, bool(force))


def _manager_errors(manager: str, *, applies: bool) -> Iterator[FieldError]:
    field = "fieldManager"
    if applies and not manager:
        yield FieldError.required(field, "is required for apply patch")
    if len(manager.encode()) > _MANAGER_BYTES:
        yield FieldError.too_long(field, _MANAGER_BYTES)
    for index, character in enumerate(manager):
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {index})"
            yield FieldError.invalid(field, manager, detail)


def _dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [FieldError.unsupported("dryRun", list(values), ["All"])]


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteBody(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: _Preconditions | None = None
    dry_run: list[str] | None = None


@attrs.frozen
class DeleteRequestOptions:
    """Options of a deletion; None leaves the choice to the object and its kind."""

    grace_period_s: int | None = None
    propagation: str | None = None
    uid: UID | None = None
    resource_version: str | None = None
    dry_run: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str], dry_run: Sequence[str], body: Any) -> Self:
        """Read the body's value, or else the query: never both, as in the real server."""
        sent = _DeleteBody() if body is None else _delete_body(body)
        if body is None:
            sent.grace_period_seconds = integer(query, "gracePeriodSeconds")
            sent.propagation_policy = query.get("propagationPolicy") or None
            sent.orphan_dependents = boolean(query, "orphanDependents")
            sent.dry_run = list(dry_run)
            # In the deletion of a collection, the version to list is thus a precondition as well.
            uid, version = query.get("uid") or None, query.get("resourceVersion") or None
            sent.preconditions = _Preconditions(uid, version)
        sent_dry_run = sent.dry_run or []
        errors = _dry_run_errors(sent_dry_run)
        if sent.propagation_policy not in (None, *_PROPAGATIONS):
            supported = [*_PROPAGATIONS, "nil"]
            errors.append(
                FieldError.unsupported("propagationPolicy", sent.propagation_policy, supported)
            )
        if sent.orphan_dependents is not None and sent.propagation_policy is not None:
            detail = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(FieldError.invalid("propagationPolicy", sent.propagation_policy, detail))
        _reject("DeleteOptions", errors)
        propagation = sent.propagation_policy
        if sent.orphan_dependents is not None:
            propagation = "Orphan" if sent.orphan_dependents else "Background"
        only = sent.preconditions or _Preconditions()
        return cls(
            grace_period_s=sent.grace_period_seconds,
            propagation=propagation,
            uid=UID(only.uid) if only.uid is not None else None,
            resource_version=only.resource_version,
            dry_run=bool(sent_dry_run),
        )


def _delete_body(body: Any) -> _DeleteBody:
    try:
        sent = msgspec.convert(body, _DeleteBody)
    except msgspec.ValidationError as error:
        raise status.bad_request(f"cannot read DeleteOptions: {error}") from None
    if sent.kind not in (None, "", "DeleteOptions"):
        message = f'no kind "{sent.kind}" is registered for version "{sent.api_version or ""}"'
        raise status.bad_request(message)
    return sent


@attrs.frozen
class ListRequestOptions:
    """Options of a list or watch; the selectors are still text."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_: str = ""
    watch: bool = False
    bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_s: int | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        options = cls(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            resource_version=query.get("resourceVersion", ""),
            resource_version_match=query.get("resourceVersionMatch", ""),
            limit=integer(query, "limit") or 0,
            continue_=query.get("continue", ""),
            watch=bool(boolean(query, "watch")),
            bookmarks=bool(boolean(query, "allowWatchBookmarks")),
            send_initial_events=boolean(query, "sendInitialEvents"),
            timeout_s=integer(query, "timeoutSeconds"),
        )
        _reject("ListOptions", _watch_errors(options) if options.watch else _list_errors(options))
        return options


def _list_errors(options: ListRequestOptions) -> list[FieldError]:
    errors = []
    match = options.resource_version_match
    field = "resourceVersionMatch"
    if match:
        if not options.resource_version:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(FieldError.forbidden(field, detail))
        if options.continue_:
            detail = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(FieldError.forbidden(field, detail))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(FieldError.unsupported(field, match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and options.resource_version == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(FieldError.forbidden(field, detail))
    if options.send_initial_events is not None:
        detail = "sendInitialEvents is forbidden for list"
        errors.append(FieldError.forbidden("sendInitialEvents", detail))
    return errors


def _watch_errors(options: ListRequestOptions) -> list[FieldError]:
    errors = []
    match = options.resource_version_match
    field = "resourceVersionMatch"
    if options.send_initial_events is not None and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(FieldError.forbidden(field, detail))
    if match:
        if options.send_initial_events is None:
            detail = (
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
            errors.append(FieldError.forbidden(field, detail))
        if match != "NotOlderThan":
            errors.append(FieldError.unsupported(field, match, ["NotOlderThan"]))
    if options.continue_:
        detail = "resourceVersionMatch is forbidden when continue is provided"
        errors.append(FieldError.forbidden(field, detail))
    return errors
