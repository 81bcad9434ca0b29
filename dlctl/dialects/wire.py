"""Reading users' objects: names in any case, and errors that name the field and the fix.

The systems that dlctl replaces decoded field names without regard to case, so manifests rely on
it. Nothing here knows one API group from another.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from dlctl.errors import InvalidJobError, shown

E = TypeVar("E", bound=enum.StrEnum)

MAX_PORT: Final = 65535
# Of one type, and of all types of a job together. A slip of the keyboard must not keep the
# controller, and with it all other jobs, busy.
MAX_REPLICAS: Final = 10_000


class Fields:
    """A JSON object of a manifest and the path that leads to it; absent and null are the same."""

    def __init__(self, value: Any, path: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise InvalidJobError(f"must be an object, not {shown(value)}", field=path)
        self.path = path
        self._fields: dict[str, tuple[str, Any]] = {
            name.lower(): (name, item) for name, item in value.items() if item is not None
        }

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._fields

    def names(self) -> list[str]:
        """Return the names of the fields as the user spelt them."""
        return [name for name, _ in self._fields.values()]

    def spelling(self, name: str) -> str:
        """Return a field's name as the user spelt it, or as given if it is not there."""
        return self._fields.get(name.lower(), (name, None))[0]

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{self.spelling(name)}"

    def value(self, name: str) -> Any:
        return self._fields.get(name.lower(), (name, None))[1]

    def text(self, name: str, default: str = "") -> str:
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise InvalidJobError(f"must be a string, not {shown(value)}", field=self.at(name))
        return value

    def integer(self, name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
        value = self.value(name)
        if value is None:
            return default
        # A bool is an int to Python, but nobody means 1 by true.
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidJobError(f"must be an integer, not {shown(value)}", field=self.at(name))
        if value < least or (most is not None and value > most):
            bound = f"between {least} and {most}" if most is not None else f"{least} or more"
            raise InvalidJobError(f"is {shown(value)}, but must be {bound}", field=self.at(name))
        return value

    def optional_integer(self, name: str, *, least: int = 0, most: int) -> int | None:
        return self.integer(name, least, least=least, most=most) if name in self else None

    def boolean(self, name: str, *, default: bool) -> bool:
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            message = f"must be true or false, not {shown(value)}"
            raise InvalidJobError(message, field=self.at(name))
        return value

    def port(self, name: str, default: int) -> int:
        return self.integer(name, default, least=1, most=MAX_PORT)

    def choice(self, name: str, options: type[E], default: E) -> E:
        """Return the option that is named, in any case; an empty string means the default."""
        return one_of(self.text(name), options, field=self.at(name), default=default)

    def respelt(self, **fields: Any) -> dict[str, Any]:
        """Return the object with these fields under just these names, in whatever case they were.

        A field given as None is left out, as are those that were null; the others keep their place.
        """
        names = {name.lower(): name for name in fields}
        own = {names.get(key, name): item for key, (name, item) in self._fields.items()}
        return {name: item for name, item in (own | fields).items() if item is not None}

    def object(self, name: str) -> "Fields":
        return Fields(self.value(name), self.at(name))

    def items(self, name: str) -> list["Fields"]:
        return objects(self.value(name), self.at(name))


def objects(value: Any, path: str) -> list[Fields]:
    """Read a list of objects; its entries know their index."""
    if not isinstance(value, list):
        problem = (
            "is missing: give a list" if value is None else f"must be a list, not {shown(value)}"
        )
        raise InvalidJobError(problem, field=path)
    return [Fields(item, f"{path}[{index}]") for index, item in enumerate(value)]


def one_of(text: str, options: Iterable[E], *, field: str, default: E | None = None) -> E:
    """Return the option whose value is the text in any case."""
    if not text and default is not None:
        return default
    found = next((option for option in options if option.value.lower() == text.lower()), None)
    if found is None:
        names = ", ".join(option.value for option in options if option.value)
        raise InvalidJobError(f"is {shown(text)}, but must be one of {names}", field=field)
    return found
