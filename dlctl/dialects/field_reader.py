"""Reading users' objects: names in any case, and errors that name the field and the fix.

The systems that dlctl replaces decoded field names case-insensitively, so manifests rely on it.
Nothing here depends on an API group.
"""

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from dlctl.dialects.value_formats import invalid_reason
from dlctl.errors import InvalidJobError, quoted

E = TypeVar("E", bound=enum.StrEnum)

MAX_INT32: Final = 2**31 - 1
MAX_PORT: Final = 65535
# The maximum of one type, and of all types of a job together. A typing error must not keep the
# controller busy at the expense of all other jobs.
MAX_REPLICAS: Final = 10_000


class FieldReader:
    """A JSON object of a manifest and its path; absent and null are the same.

    Creating one from anything else raises InvalidJobError, and so does each method that returns a
    field as a type that it does not have. Numbers are also checked against their bounds.
    """

    def __init__(self, value: Any, path: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise InvalidJobError(f"must be an object, not {quoted(value)}", field=path)
        self.path = path
        self._value = value
        self._by_lower_name: dict[str, tuple[str, Any]] = {
            name.lower(): (name, item) for name, item in value.items() if item is not None
        }

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._by_lower_name

    def names(self) -> list[str]:
        """Return the names of the fields as the user wrote them."""
        return [name for name, _ in self._by_lower_name.values()]

    def original_name(self, name: str) -> str:
        """Return a field's name as the user wrote it, or as given if it is absent."""
        return self._by_lower_name.get(name.lower(), (name, None))[0]

    def reject_twice(self, name: str) -> None:
        """Raise InvalidJobError if a field is given in two spellings."""
        given = [each for each, item in self._value.items() if item is not None]
        spellings = [each for each in given if each.lower() == name.lower()]
        if len(spellings) > 1:
            message = f"is given twice, as {' and '.join(spellings)}: keep one of them"
            raise InvalidJobError(message, field=self.path_of(name))

    def path_of(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{self.original_name(name)}"

    def value(self, name: str) -> Any:
        return self._by_lower_name.get(name.lower(), (name, None))[1]

    def string(self, name: str, default: str = "") -> str:
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise InvalidJobError(invalid_reason(value, "str"), field=self.path_of(name))
        return value

    def integer(
        self, name: str, default: int, *, minimum: int = 0, maximum: int | None = None
    ) -> int:
        value = self.value(name)
        if value is None:
            return default
        # In Python a bool is an int, but ``true`` does not mean 1.
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidJobError(invalid_reason(value, "int64"), field=self.path_of(name))
        if value < minimum or (maximum is not None and value > maximum):
            bound = (
                f"between {minimum} and {maximum}" if maximum is not None else f"{minimum} or more"
            )
            raise InvalidJobError(
                f"is {quoted(value)}, but must be {bound}", field=self.path_of(name)
            )
        return value

    def optional_integer(self, name: str, *, minimum: int = 0, maximum: int) -> int | None:
        return (
            self.integer(name, minimum, minimum=minimum, maximum=maximum) if name in self else None
        )

    def boolean(self, name: str, *, default: bool) -> bool:
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InvalidJobError(invalid_reason(value, "bool"), field=self.path_of(name))
        return value

    def port(self, name: str, default: int) -> int:
        return self.integer(name, default, minimum=1, maximum=MAX_PORT)

    def enum(self, name: str, options: type[E], default: E) -> E:
        """Return the named option, case-insensitively; an empty string means the default."""
        return parse_enum(self.string(name), options, field=self.path_of(name), default=default)

    def choice(self, name: str, options: Collection[str], default: str = "") -> str:
        """Return one of these strings; an empty one means the default, as an absent one does."""
        value = self.string(name) or default
        if value not in options:
            shown = ", ".join(filter(None, options))
            message = f"is {quoted(value)}, but must be one of {shown}"
            raise InvalidJobError(message, field=self.path_of(name))
        return value

    def canonicalized(self, **fields: Any) -> dict[str, Any]:
        """Return the object with these fields under exactly these names, whatever their case was.

        Fields given as None are left out, like those that were null; the others keep their place.
        """
        names = {name.lower(): name for name in fields}
        original = {names.get(key, name): item for key, (name, item) in self._by_lower_name.items()}
        return {name: item for name, item in (original | fields).items() if item is not None}

    def object(self, name: str) -> "FieldReader":
        return FieldReader(self.value(name), self.path_of(name))

    def items(self, name: str) -> Iterator["FieldReader"]:
        return read_objects(self.value(name), self.path_of(name))


def read_objects(value: Any, path: str) -> Iterator[FieldReader]:
    """Read a list of objects one by one; the paths of its entries have their index.

    A reader takes more memory than its entry, and the first invalid entry of a long list ends it.

    :raises InvalidJobError: at once if it is no list, and while iterating if an entry is no object.
    """
    if not isinstance(value, list):
        message = (
            "is missing: give a list" if value is None else f"must be a list, not {quoted(value)}"
        )
        raise InvalidJobError(message, field=path)
    return (FieldReader(item, f"{path}[{index}]") for index, item in enumerate(value))


def parse_enum(text: str, options: Iterable[E], *, field: str, default: E | None = None) -> E:
    """Return the option whose value equals the text case-insensitively.

    :raises InvalidJobError: if there is none; an empty text means the default, if there is one.
    """
    if not text and default is not None:
        return default
    option_found = next(
        (option for option in options if option.value.lower() == text.lower()), None
    )
    if option_found is None:
        names = ", ".join(option.value for option in options if option.value)
        raise InvalidJobError(f"is {quoted(text)}, but must be one of {names}", field=field)
    return option_found
