"""The names of a job's children, and which job names keep them valid."""

import hashlib
import re
import string
from collections.abc import Sequence
from typing import Final

from dlctl.api.job import ReplicaSpec
from dlctl.api.meta import UID
from dlctl.errors import InvalidJobError, quoted

# The limit of both label values and DNS labels; a job's name is used as both.
MAX_LENGTH: Final = 63
MAX_PREFIX_LENGTH: Final = 40
_RUNTIME_ID_LENGTH: Final = 4
_DIGITS: Final = string.digits + string.ascii_lowercase
_SERVICE_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_RUNTIME_ID: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def runtime_id(uid: UID) -> str:
    """Return four characters of [0-9a-z] that depend on the UID alone."""
    number = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8])
    digits = []
    for _ in range(_RUNTIME_ID_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)


def check_child_names(name: str, children: Sequence[str], *, has_services: bool = True) -> None:
    """Reject a job whose name, or a child's name made from it, is invalid for a service or label.

    The name of a job without services only has to be a label value, and its pods may have names of
    253 characters.

    :raises InvalidJobError: naming the field and the fix.
    """
    if has_services:
        _check_service_name(name)
    longest = max([name, *children], key=len) if has_services else name
    _check_length(longest, "metadata.name")


def check_names_with_runtime_id(
    name: str, runtime_id: str, specs: Sequence[ReplicaSpec], path: str
) -> None:
    """Reject a job whose children would have invalid names; ``path`` is that of the runtime id.

    :raises InvalidJobError: naming the field and the fix.
    """
    _check_service_name(name)
    if len(name) > MAX_LENGTH:
        raise InvalidJobError(
            f"has {len(name)} characters, but a label holds it: use at most {MAX_LENGTH}",
            field="metadata.name",
        )
    if not _RUNTIME_ID.fullmatch(runtime_id):
        raise InvalidJobError(
            f"is {quoted(runtime_id)}, but is part of names: use lower-case letters, digits, '-'",
            field=path,
        )
    field = path if len(runtime_id) > _RUNTIME_ID_LENGTH else "metadata.name"
    for spec in specs:
        last_index = max(spec.replicas - 1, 0)
        _check_length(f"{name[:MAX_PREFIX_LENGTH]}-{spec.type}-{runtime_id}-{last_index}", field)


def _check_service_name(name: str) -> None:
    if not _SERVICE_NAME.fullmatch(name):
        raise InvalidJobError(
            f"is {name!r}, but services are named after it: use lower-case letters, digits "
            "and '-', begin with a letter, and do not end with '-'",
            field="metadata.name",
        )


def _check_length(longest: str, field: str) -> None:
    if len(longest) > MAX_LENGTH:
        raise InvalidJobError(
            f"makes names such as {longest!r} of {len(longest)} characters, and DNS allows "
            f"{MAX_LENGTH}: shorten it by {len(longest) - MAX_LENGTH}",
            field=field,
        )
