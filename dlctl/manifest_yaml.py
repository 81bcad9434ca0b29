"""YAML as kubectl and the API server read it, by sigs.k8s.io/yaml: what has a form in JSON.

PyYAML by itself takes ``1e-3`` and ``y`` for text, and ``12:30:00`` for a number of base 60.
"""

import json
import math
import re
from collections.abc import Callable, Hashable
from types import NoneType
from typing import Any, Final

import yaml

_BOOL: Final = "tag:yaml.org,2002:bool"
_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
# Tag, pattern and first characters; https://github.com/kubernetes-sigs/yaml, goyaml.v2/resolve.go.
_RESOLVERS: Final = (
    (
        _BOOL,
        "y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF",
        "yYtToOnNfF",
    ),
    (
        _INT,
        r"[-+]?(?:0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)",
        "-+0123456789",
    ),
    (
        _FLOAT,
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9_]+)?",
        "-+.0123456789",
    ),
    (_FLOAT, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("tag:yaml.org,2002:null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:merge", "<<", "<"),
)
_INT64: Final = range(-(2**63), 2**63)
# From here on, a float with an integral value is longer as an integer, and no more precise.
_MAX_INTEGRAL: Final = 2.0**53
# A look at each token goes through all open brackets; Python's stack ends sooner.
_MAX_FLOW_LEVEL: Final = 1000
# The number of values that aliases may add to those that are written out.
_MAX_ALIASED_VALUES: Final = 100_000
_BLOCK_INDICATORS: Final = re.compile("[+-][1-9]?|[1-9]?[+-]?")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NO_CHARACTER: Final = "an escape of no character: write the character itself"
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-7]+")


class ManifestLoader(yaml.SafeLoader):
    """Loads what kubectl would send to the server."""

    # Without PyYAML's own, such as for dates, which are text.
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML declares it
    # Called with what Go's decoder says of a key that its mapping has already.
    on_repeated_key: Callable[[str], None] | None = None

    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803
        if self.flow_level >= _MAX_FLOW_LEVEL:
            raise RecursionError("the brackets nest too deeply")
        super().fetch_flow_collection_start(TokenClass)

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        # A tab may not indent, but separate or follow values.
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def scan_plain_spaces(self, indent: int, start_mark: yaml.Mark) -> list[str] | None:
        length = 0
        while self.peek(length) in (" ", "\t"):
            length += 1
        spaces: str = self.prefix(length)
        if "\t" in spaces:
            self.forward(length)
        found: list[str] | None = super().scan_plain_spaces(indent, start_mark)
        return [spaces] if "\t" in spaces and found == [] else found

    def scan_block_scalar_indicators(self, start_mark: yaml.Mark) -> tuple[bool | None, int | None]:
        found = _BLOCK_INDICATORS.match(self.prefix(2))
        indicators = found[0] if found else ""
        self.forward(len(indicators))
        chomping = indicators.strip("123456789")
        indent = indicators.strip("+-")
        return (chomping == "+" if chomping else None), (int(indent) if indent else None)

    def scan_block_scalar_ignored_line(self, start_mark: yaml.Mark) -> None:
        while self.peek() in " \t":
            self.forward()
        super().scan_block_scalar_ignored_line(start_mark)

    def scan_flow_scalar_non_spaces(self, double: bool, start_mark: yaml.Mark) -> list[str]:
        try:
            found: list[str] = super().scan_flow_scalar_non_spaces(double, start_mark)
        except (OverflowError, ValueError):
            raise yaml.scanner.ScannerError(None, None, _NO_CHARACTER, self.get_mark()) from None
        return found

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        value = super().construct_scalar(node)
        # The scanner also reads JSON, which escapes characters in pairs.
        if _SURROGATE.search(value):
            raise yaml.constructor.ConstructorError(None, None, _NO_CHARACTER, node.start_mark)
        return value

    def construct_document(self, node: yaml.Node) -> Any:
        _check_aliases(node)
        # In one go: step by step, a list may contain itself.
        value = self.construct_object(node, deep=True)
        self.constructed_objects, self.recursive_objects = {}, {}
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(
                problem="expected a mapping", problem_mark=node.start_mark
            )
        self.flatten_mapping(node)
        result: dict[Hashable, Any] = {}
        seen = set[tuple[type, Any]]()
        for key_node, value_node in node.value:
            key = self._key(key_node)
            result[_name(key)] = self.construct_object(value_node, deep=deep)
            if self.on_repeated_key and (type(key), key) in seen:
                line = value_node.start_mark.line + 1
                self.on_repeated_key(f"line {line}: key {_shown(key)} already set in map")
            seen.add((type(key), key))
        return result

    def _key(self, node: yaml.Node) -> Any:
        key = self.construct_object(node, deep=True)
        if isinstance(key, list | dict | set):
            problem = "a list or mapping cannot be the name of a field: put it in quotes"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
        return key


def load(text: str | bytes, on_repeated_key: Callable[[str], None] | None = None) -> Any:
    """Return the value of a single document, in which the last of repeated keys counts.

    :raises yaml.YAMLError: if it is malformed.
    :raises RecursionError: if it is nested too deeply.
    """
    loader = ManifestLoader(text)
    loader.on_repeated_key = on_repeated_key
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _name(key: Any) -> str:
    return json.dumps(key) if isinstance(key, bool | NoneType) else str(key)


def _shown(key: Any) -> str:
    return json.dumps(key, ensure_ascii=False) if isinstance(key, str) else _name(key)


def json_number(text: str) -> float | int | str:
    """Return a number in JSON as YAML has it; the text itself if it is too large for a float."""
    # No longer text is an integer of 64 bits.
    if len(text) <= len(str(_INT64.start)) and "." not in text and "e" not in text.lower():
        value = int(text)
        if value in _INT64:
            return value
    return _finite(text)


def _check_aliases(document: yaml.Node) -> None:
    """Raise YAMLError if aliases make a document much larger, as in a list of lists of lists."""
    sizes: dict[int, int] = {}
    written = 0

    def size(node: yaml.Node) -> int:
        nonlocal written
        if isinstance(node, yaml.ScalarNode):
            written += 1
            return 1
        if id(node) not in sizes:
            written += 1
            # A node inside itself is found later.
            sizes[id(node)] = 0
            parts = node.value
            if isinstance(node, yaml.MappingNode):
                parts = [part for pair in parts for part in pair]
            sizes[id(node)] = 1 + sum(map(size, parts))
        return sizes[id(node)]

    if size(document) - written > _MAX_ALIASED_VALUES:
        raise yaml.constructor.ConstructorError(problem="document contains excessive aliasing")


class ManifestDumper(yaml.SafeDumper):
    """Quotes text that PyYAML or kubectl would take for something else."""


def _boolean(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bool:
    return str(loader.construct_scalar(node)).lower() in ("y", "yes", "true", "on")


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float | int | str:
    text = str(loader.construct_scalar(node))
    plain = text.replace("_", "")
    try:
        value = int(plain, 8 if _LEADING_ZERO.fullmatch(plain) else 0)
    except ValueError:
        return text
    if value in _INT64:
        return value
    return _finite(text) if plain.lstrip("+-").isdigit() else text


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float | int | str:
    text = str(loader.construct_scalar(node))
    if re.search("[a-df-z]", text.lower()):
        problem = f"JSON has no number {text}: write another, or put it in quotes"
        raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
    return _finite(text)


def _finite(text: str) -> float | int | str:
    """Return the number that a text is; the text itself if that is none, or infinite."""
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        return text
    if math.isinf(value):
        return text
    # JSON does not distinguish them.
    return int(value) if value.is_integer() and abs(value) < _MAX_INTEGRAL else value


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


ManifestLoader.add_constructor(_BOOL, _boolean)
ManifestLoader.add_constructor(_INT, _integer)
ManifestLoader.add_constructor(_FLOAT, _number)
ManifestLoader.add_constructor("tag:yaml.org,2002:timestamp", _text)
for tag, pattern, first in _RESOLVERS:
    for each in (ManifestLoader, ManifestDumper):
        each.add_implicit_resolver(tag, re.compile(f"(?:{pattern})$"), list(first))
