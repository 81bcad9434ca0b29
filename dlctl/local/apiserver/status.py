"""Errors of the API server as ``Status`` objects, by which clients decide.

Codes, reasons and messages are those of kube-apiserver; nothing here knows HTTP or storage.
"""

from collections.abc import Sequence
from typing import Any, Self

import attrs
import msgspec

from dlctl.api.meta import Resource
from dlctl.errors import DlctlError
from dlctl.local.apiserver import go_floats

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def _quoted(value: object) -> str:
    if isinstance(value, float):
        return go_floats.as_text(value)
    return msgspec.json.encode(value).decode()


@attrs.frozen
class FieldError:
    """One of several reasons why an object or its options are rejected."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    @classmethod
    def invalid(cls, field: str, value: object, detail: str) -> Self:
        return cls(field, _with(f"Invalid value: {_quoted(value)}", detail))

    @classmethod
    def wrong_type(cls, field: str, value: object, detail: str) -> Self:
        return attrs.evolve(cls.invalid(field, value, detail), reason="FieldValueTypeInvalid")

    @classmethod
    def required(cls, field: str, detail: str = "") -> Self:
        return cls(field, _with("Required value", detail), "FieldValueRequired")

    @classmethod
    def forbidden(cls, field: str, detail: str) -> Self:
        return cls(field, _with("Forbidden", detail), "FieldValueForbidden")

    @classmethod
    def duplicate(cls, field: str, value: object) -> Self:
        return cls(field, f"Duplicate value: {_quoted(value)}", "FieldValueDuplicate")

    @classmethod
    def unsupported(cls, field: str, value: object, supported: Sequence[str]) -> Self:
        values = ", ".join(_quoted(each) for each in supported)
        message = f"Unsupported value: {_quoted(value)}: supported values: {values}"
        return cls(field, message, "FieldValueNotSupported")

    @classmethod
    def too_long(cls, field: str, limit_bytes: int) -> Self:
        message = f"Too long: may not be more than {limit_bytes} bytes"
        return cls(field, message, "FieldValueTooLong")

    @classmethod
    def not_found(cls, field: str, value: object) -> Self:
        return cls(field, f"Not found: {_quoted(value)}", "FieldValueNotFound")


def _with(start: str, detail: str) -> str:
    return f"{start}: {detail}" if detail else start


class StatusError(DlctlError):
    """An error response to a request; ``details`` is in wire format."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        # Continue token for the rest of a list that expired.
        self.continue_ = ""
        # Why an object cannot be decoded, if so: patches report it differently.
        self.problem = ""
        # Sent as headers.
        self.warnings: Sequence[str] = ()

    @property
    def retry_after_s(self) -> int:
        return int((self.details or {}).get("retryAfterSeconds", 0))

    def body(self) -> dict[str, Any]:
        """Return the ``Status`` object in wire format."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_} if self.continue_ else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        # Also if empty: kubectl reads it in every error.
        if self.details is not None:
            status["details"] = self.details
        return status | {"code": self.code}


def _details(resource: Resource, name: str) -> dict[str, Any]:
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}


def success(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """Return the response to the deletion of an object that is gone at once."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _details(resource, name) | {"uid": uid},
    }


def not_found(resource: Resource, name: str) -> StatusError:
    message = f'{resource.group_resource} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(resource, name))


def unknown_path() -> StatusError:
    """Return the error for a path without a resource."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> StatusError:
    message = f'{resource.group_resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(resource, name))


def no_free_name(resource: Resource, prefix: str) -> StatusError:
    """Return the error when all generated names were taken."""
    message = (
        f'{resource.group_resource} "{prefix}" already exists, the server was not able to generate '
        "a unique name for the object"
    )
    return StatusError(409, "AlreadyExists", message, _details(resource, prefix))


def conflict(resource: Resource, name: str, message: str = MODIFIED) -> StatusError:
    message = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {message}'
    return StatusError(409, "Conflict", message, _details(resource, name))


def apply_conflict(conflicts: Sequence[tuple[str, str]]) -> StatusError:
    """Return the error for fields of other managers: each manager as text, and a field of it."""
    count = len(conflicts)
    if count == 1:
        ((manager, path),) = conflicts
        message = f"1 conflict: conflict with {manager}: {path}"
    else:
        lines = []
        for manager in dict.fromkeys(manager for manager, _ in conflicts):
            lines += [f"conflicts with {manager}:"]
            lines += [f"- {path}" for name, path in conflicts if name == manager]
        message = f"{count} conflicts: " + "\n".join(lines)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, path in conflicts
    ]
    return StatusError(409, "Conflict", f"Apply failed with {message}", {"causes": causes})


def forbidden(resource: Resource, name: str, message: str) -> StatusError:
    subject = f'{resource.group_resource} "{name}"' if name else resource.group_resource
    return StatusError(
        403, "Forbidden", f"{subject} is forbidden: {message}", _details(resource, name)
    )


def invalid(resource: Resource, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the error for an object (or options) that violates the rules of its kind."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    texts = list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))
    text = f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)
    details = _details(resource, name) | {"kind": resource.kind}
    details["causes"] = [attrs.asdict(error) for error in errors]
    return StatusError(422, "Invalid", _with(f'{kind} "{name}" is invalid', text), details)


def unprocessable() -> StatusError:
    """Return the error for a JSON Patch that does not fit the object."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {})


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def too_large_version(wanted: int, current: int) -> StatusError:
    """Return the error for a future version, such as one of another server."""
    message = "Too large resource version"
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": message}],
        "retryAfterSeconds": 1,
    }
    text = f"Timeout: {message}: {wanted}, current: {current}"
    return StatusError(504, "Timeout", text, details)


def too_large(limit_bytes: int) -> StatusError:
    message = f"Request entity too large: limit is {limit_bytes}"
    return StatusError(413, "RequestEntityTooLarge", message)


def not_supported(resource: Resource, verb: str) -> StatusError:
    """Return the error for an unsupported verb on a subresource of a custom resource."""
    message = f'{verb} is not supported on resources of kind "{resource.group_resource}"'
    return StatusError(405, "MethodNotAllowed", message, _details(resource, ""))


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def unsupported_media_type(message: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message)


def not_acceptable() -> StatusError:
    message = "only the following media types are accepted: application/json"
    return StatusError(406, "NotAcceptable", message)


def internal_error(message: str) -> StatusError:
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)
