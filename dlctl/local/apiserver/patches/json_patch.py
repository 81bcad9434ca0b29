"""JSON Patch as the API server applies it, which differs from RFC 6902.

A missing field reads as null: it can be copied, replaced and tested for null. Array indexes may be
negative or have a sign, and only a replace reaches the whole document.
"""

import copy
import re
from typing import Any, Final

import msgspec

from dlctl.local.apiserver import status
from dlctl.local.apiserver.serialization.decoding_errors import wrong_type

# Total size limit of all copies of one patch.
_COPY_LIMIT_BYTES: Final = 3 * 1024 * 1024
# How many items of lists the operations of one patch may shift: as the most operations that a patch
# may have do on a list of as many items.
_SHIFT_LIMIT: Final = 10_000 * 10_000
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")


class _Operation(msgspec.Struct):
    op: str = ""
    path: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    value: Any = None


def json_patched(target: Any, operations: Any) -> Any:
    """Return the target after all operations; if one does not fit, all are rejected.

    The target is not modified.
    """
    if not isinstance(operations, list):
        problem = wrong_type(operations, "[]handlers.jsonPatchOp")
        raise status.bad_request(f"error decoding patch: {problem}")
    try:
        parsed = msgspec.convert(operations, list[_Operation])
    except msgspec.ValidationError as error:
        raise status.bad_request(f"error decoding patch: {error}") from None
    document = _Document(copy.deepcopy(target))
    for operation in parsed:
        document.apply(operation)
    return document.root


class _Document:
    def __init__(self, root: Any) -> None:
        self.root = root
        self._copied_bytes = 0
        self._shifted = 0

    def apply(self, operation: _Operation) -> None:
        path, source = operation.path, operation.from_
        # A copy, since later operations may change the document.
        value = copy.deepcopy(operation.value)
        match operation.op:
            case "add":
                self._add(path, value)
            case "replace":
                self._replace(path, value)
            case "remove":
                self._remove(path)
            case "test":
                if _canonical(self._tested(path)) != _canonical(value):
                    raise status.unprocessable()
            case "move":
                value = self._read(source)
                self._remove(source)
                self._add(path, value)
            case "copy":
                self._add(path, self._copied(self._read(source)))
            case _:
                raise status.unprocessable()

    def _read(self, pointer: str | None) -> Any:
        container, key = self._resolve(pointer)
        if isinstance(container, dict):
            return container.get(key)
        return container[_index(key, len(container))]

    def _tested(self, pointer: str | None) -> Any:
        return self.root if pointer == "" else self._read(pointer)

    def _copied(self, value: Any) -> Any:
        if value is not None:
            self._copied_bytes += len(_canonical(value))
        if self._copied_bytes > _COPY_LIMIT_BYTES:
            raise status.unprocessable()
        return copy.deepcopy(value)

    def _add(self, pointer: str | None, value: Any) -> None:
        container, key = self._resolve(pointer)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(self._shifting(_index(key, len(container) + 1), container), value)

    def _replace(self, pointer: str | None, value: Any) -> None:
        if pointer == "":
            if not isinstance(value, dict | list):
                raise status.unprocessable()
            self.root = value
            return
        container, key = self._resolve(pointer)
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_index(key, len(container))] = value

    def _remove(self, pointer: str | None) -> None:
        container, key = self._resolve(pointer)
        if isinstance(container, list):
            del container[self._shifting(_index(key, len(container)), container)]
        elif key in container:
            del container[key]
        else:
            raise status.unprocessable()

    def _shifting(self, index: int, container: list[Any]) -> int:
        """Return the index, from which on the items of a list are about to be shifted."""
        self._shifted += len(container) - index
        if self._shifted > _SHIFT_LIMIT:
            message = (
                "Request entity too large: The operations of the patch shift more than "
                f"{_SHIFT_LIMIT} list items"
            )
            raise status.StatusError(413, "RequestEntityTooLarge", message)
        return index

    def _resolve(self, pointer: str | None) -> tuple[dict[str, Any] | list[Any], str]:
        """Return the parent object or list of a pointer, and the last part of the pointer."""
        container = self.root
        # Anything before the first slash is ignored.
        _, *parts = (pointer or "").split("/")
        if not parts:
            raise status.unprocessable()
        *parents, key = [part.replace("~1", "/").replace("~0", "~") for part in parts]
        for parent in parents:
            if isinstance(container, dict):
                container = container.get(parent)
            else:
                container = container[_index(parent, len(container))]
            if not isinstance(container, dict | list):
                raise status.unprocessable()
        return container, key


def _index(part: str, length: int) -> int:
    """Return the list index for a part of a pointer; negative ones count from the end."""
    index = int(part) if _INDEX.fullmatch(part) else length
    if not -length <= index < length:
        raise status.unprocessable()
    return index % length


def _canonical(value: Any) -> bytes:
    """Return bytes that are equal only for equal JSON: 1, 1.0 and true are three values."""
    return msgspec.json.encode(value, order="deterministic")
