"""Settings from flags, environment variables and a file, in this order of precedence.

A setting has one name in three spellings: ``--restart-backoff``, ``DLCTL_RESTART_BACKOFF``, and
``restart-backoff`` in the file. Unknown names are rejected, not ignored.
"""

import argparse
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from dlctl.cli.settings import et_operator, mpi_operator
from dlctl.cli.settings.compat_flags import add_ignored_flags
from dlctl.cli.settings.training_operator import VARIABLES
from dlctl.cli.suggestions import did_you_mean
from dlctl.errors import ConfigError
from dlctl.options import Options, flag

_PREFIX: Final = "DLCTL_"
_CONFIG_VARIABLE: Final = "DLCTL_CONFIG"
# Variables that Kubernetes sets in every container for a Service whose name begins with "dlctl".
_SERVICE_LINK: Final = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_[A-Z]+(_.+)?)?)")
_EPILOG: Final = """\
Each setting can also be given in the environment, as DLCTL_RESTART_BACKOFF for
--restart-backoff, or in the file, as "restart-backoff: 10". Flags override the
environment, and the environment overrides the file.
"""


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting; flags that are not given stay unset."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.allow_abbrev = False
    parser.usage = f"{parser.prog} [--config FILE] [--SETTING VALUE ...]"
    parser.add_argument("--config", metavar="FILE", help="YAML file with settings")
    add_ignored_flags(parser)
    special: Mapping[type, dict[str, Any]] = {
        bool: {"nargs": "?", "const": "true"},
        tuple: {"action": "append"},
    }
    add_argument = parser.add_argument
    for field in attrs.fields(Options):
        if field.metadata["topic"]:
            add_argument = parser.add_argument_group(field.metadata["topic"]).add_argument
        add_argument(
            *(flag(name) for name, named in _NAMES.items() if named is field),
            dest=field.name,
            default=argparse.SUPPRESS,
            metavar=_metavar(field),
            help=_help(field).replace("%", "%%"),
            **special.get(type(field.default), {}),
        )


def load_settings(args: argparse.Namespace, environment: Mapping[str, str]) -> Options:
    """Load the settings from all sources.

    :raises ConfigError: if a setting is unknown, malformed, or contradicts another.
    """
    path = args.config or environment.get(_CONFIG_VARIABLE)
    values: dict[str, Any] = {
        name: environment[known] for known, name in VARIABLES.items() if known in environment
    }
    if path:
        values |= _from_file(Path(path))
    values |= _from_environment(environment)
    for name, field in _FIELDS.items():
        if name in args:
            given = getattr(args, name)
            text = given if isinstance(given, str) else ",".join(given)
            values[name] = _parsed(field, text, flag(name))
    return Options(**values)


def environment_variable(field: str) -> str:
    """Return the environment variable of a field."""
    return _PREFIX + file_key(field).replace("-", "_").upper()


def file_key(field: str) -> str:
    """Return the key of a field in the file."""
    return flag(field).removeprefix("--")


def describe_default(field: "attrs.Attribute[Any]") -> str:
    if isinstance(field.default, bool):
        return f"default {str(field.default).lower()}"
    if isinstance(field.default, float):
        return f"default {field.default:g}"
    if isinstance(field.default, tuple) and field.default:
        return f"default {', '.join(field.default)}"
    return f"default {field.default}" if field.default not in ("", ()) else "default: not set"


_FIELDS: Final = {field.name: field for field in attrs.fields(Options)}
_ALIASES: Final = {**et_operator.ALIASES, **mpi_operator.ALIASES}
_NAMES: Final = {**_FIELDS, **{alias: _FIELDS[name] for alias, name in _ALIASES.items()}}


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    known = {environment_variable(name): field for name, field in _NAMES.items()}
    seen: dict[str, str] = {}
    for name, text in environment.items():
        if name in known:
            other = seen.setdefault(known[name].name, name)
            if other != name:
                raise ConfigError(f"{name} and {other} are the same setting: set only one of them")
            yield known[name].name, _parsed(known[name], text, name)
        elif (
            name.startswith(_PREFIX)
            and name != _CONFIG_VARIABLE
            and not _SERVICE_LINK.fullmatch(name)
        ):
            raise ConfigError(f"{name}: unknown setting{did_you_mean(name, known)}")


def _from_file(path: Path) -> Iterator[tuple[str, Any]]:
    known = {file_key(name): field for name, field in _NAMES.items()}
    seen = set()
    for name, text in _lines(path):
        origin = f"{path}: {name}"
        if name not in known:
            raise ConfigError(f"{origin}: unknown setting{did_you_mean(name, known)}")
        if known[name].name in seen:
            raise ConfigError(f"{origin} is set twice")
        seen.add(known[name].name)
        yield known[name].name, _parsed(known[name], text, origin)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield names and values as text: a namespace may be called ``on``, a YAML boolean."""
    try:
        document = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {path}: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if document is None:
        return
    pairs = document.value if isinstance(document, yaml.MappingNode) else [(document, document)]
    for name, value in pairs:
        if not (isinstance(name, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)):
            raise ConfigError(f"{path}: write one setting per line, such as kube-api-qps: 50")
        yield str(name.value), str(value.value)


def _parsed(field: "attrs.Attribute[Any]", text: str, origin: str) -> Any:
    type_ = type(field.default)
    try:
        return _PARSERS[type_](text)
    except (KeyError, ValueError):
        raise ConfigError(f"{origin} is {text!r}: use {_TYPE_NAMES[type_]}") from None


def _help(field: "attrs.Attribute[Any]") -> str:
    text: str = field.metadata["help"]
    return text if field.default in ("", ()) else f"{text} ({describe_default(field)})"


def _metavar(field: "attrs.Attribute[Any]") -> str:
    if field.metadata["choices"]:
        return f"{{{','.join(field.metadata['choices'])}}}"
    if field.name.endswith("_s"):
        return "SECONDS"
    return {bool: "true|false", str: "TEXT", tuple: "NAMES"}.get(type(field.default), "N")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


_PARSERS: Final[Mapping[type, Callable[[str], Any]]] = {
    str: str,
    int: int,
    float: _finite,
    bool: lambda text: {"true": True, "1": True, "false": False, "0": False}[text.lower()],
    tuple: lambda text: tuple(part.strip() for part in text.split(",") if part.strip()),
}
_TYPE_NAMES: Final[Mapping[type, str]] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}
