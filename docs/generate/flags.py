"""Tables of the controller's settings, and of the flags of other operators that it accepts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from dlctl.cli.settings import et_operator, mpi_operator, training_operator
from dlctl.cli.settings.sources import (
    describe_default,
    environment_variable,
    file_key,
)
from dlctl.options import Options, flag
from docs.generate.tables import table

_FIELDS: Final = {file_key(field.name): field for field in attrs.fields(Options)}


def all_flags() -> str:
    """Return the table of all settings in each of their spellings."""
    rows = (
        (
            f"`{flag(field.name)}`",
            f"`{environment_variable(field.name)}`",
            _default(field),
            _help(field),
        )
        for field in _FIELDS.values()
    )
    return table(("flag", "environment", "default", "meaning"), rows)


def some_flags(keys: Iterable[str]) -> str:
    """Return the table of a topic's settings, by their keys.

    :raises KeyError: if one does not exist.
    """
    rows = (
        (f"`{flag(field.name)}`", _default(field), _help(field))
        for field in (_FIELDS[key_] for key_ in keys)
    )
    return table(("flag", "default", "meaning"), rows)


def training_operator_flags() -> str:
    rows = (
        *(
            (f"`{name}`", f"`{flag(field)}`, unless that is set")
            for name, field in training_operator.VARIABLES.items()
        ),
        *_ignored(training_operator.IGNORED),
    )
    return table(("flag or variable of training-operator", "in dlctl"), rows)


def et_operator_flags() -> str:
    rows = (*_aliases(et_operator.ALIASES), *_ignored(et_operator.IGNORED))
    return table(("flag of et-operator", "in dlctl"), rows)


def mpi_operator_flags() -> str:
    rows = (*_aliases(mpi_operator.ALIASES), *_ignored(mpi_operator.IGNORED))
    return table(("flag of mpi-operator", "in dlctl"), rows)


def _default(field: "attrs.Attribute[object]") -> str:
    return describe_default(field).removeprefix("default").removeprefix(":").strip()


def _help(field: "attrs.Attribute[object]") -> str:
    choices = ", ".join(f"`{choice}`" for choice in field.metadata["choices"])
    return f"{field.metadata['help']}{choices and f': {choices}'}"


def _aliases(aliases: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for alias, field in aliases.items():
        yield f"`{flag(alias)}`, `{environment_variable(alias)}`", f"the same as `{flag(field)}`"


def _ignored(flags: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, reason in flags.items():
        yield f"`{name}`", f"no effect, and the log says so: {reason}"
