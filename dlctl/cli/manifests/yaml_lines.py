"""YAML documents with the lines of their fields."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import yaml

from dlctl.manifest_yaml import ManifestLoader, json_number

Path = tuple[str | int, ...]

_BYTE_ORDER_MARK: Final = re.compile("^\ufeff", re.MULTILINE)


@attrs.frozen(eq=False)
class Document:
    """A document that is not empty."""

    value: Any
    node: yaml.Node
    # The keys that a mapping has already, of which the last one counts.
    repeated: Sequence[yaml.ScalarNode]


def documents(text: str) -> Iterator[Document]:
    """Yield the decoded documents that are not empty.

    :raises yaml.YAMLError: if the text is malformed.
    """
    # As kubectl's parser: files of Windows begin with the mark, also where they are joined.
    text = _BYTE_ORDER_MARK.sub("", text)
    if found := _json_values(text):
        for value, source, line in found:
            composed = _compose(source, line)
            yield Document(value, composed, _repeated_fields(composed))
        return
    loader = ManifestLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None, "there is one"
            # The loader puts the fields of << among a mapping's own.
            repeated = _repeated_fields(node)
            value = loader.construct_document(node)
            if value is not None:
                yield Document(value, node, repeated)
    finally:
        loader.dispose()


def _json_values(text: str) -> Sequence[tuple[Any, str, int]]:
    """Return the objects of a JSON stream, each as YAML with its line; empty if it is none.

    JSON may be indented with tabs, needs no separator, and escapes characters in pairs.
    """
    found, end, line = list[tuple[Any, str, int]](), 0, 0
    while start := _JSON_OBJECT.match(text, end):
        begin = start.end() - 1
        line += text.count("\n", end, begin)
        try:
            value, end = _JSON.raw_decode(text, begin)
        except ValueError:
            return ()
        value = _without_surrogates(value)
        # Strings of JSON have no tabs.
        source = text[begin:end].replace("\t", " ")
        found.append((value, source, line))
        line += source.count("\n")
    return () if text[end:].strip(_JSON_SPACE) else found


def _without_surrogates(value: Any) -> Any:
    """Return a value of JSON with U+FFFD for each escape of half a character, as Go reads it."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _JSON.decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def _compose(source: str, line: int) -> yaml.Node:
    """Return the node of a document that begins at a line, counted from 0."""
    loader = ManifestLoader(source)
    loader.line = line
    try:
        node = loader.get_single_node()
    finally:
        loader.dispose()
    assert node is not None, "an object is no empty document"
    return node


def _no_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


_JSON: Final = json.JSONDecoder(
    parse_float=json_number, parse_int=json_number, parse_constant=_no_constant
)
_JSON_SPACE: Final = " \t\r\n"
_JSON_OBJECT: Final = re.compile(rf"[{_JSON_SPACE}]*\{{")


def line_of(node: yaml.Node, path: Path) -> int:
    """Return the line of a field, counted from 1; of the last part of the path that exists."""
    line = node.start_mark.line
    for step in path:
        found = _child(node, step)
        if found is None:
            break
        line, node = found
    return int(line) + 1


def dotted(path: Path) -> str:
    """Return a path as messages show it: ``spec.replicaSpecs[0].template``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def parsed(field: str) -> Path:
    """Return the path of a field that a message shows."""
    steps = re.findall(r"[^.\[\]]+", field)
    return tuple(int(step) if step.isdigit() else step for step in steps)


def child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    """Return the node of an item or a field, if there is one."""
    found = _child(node, step)
    return found and found[1]


def _child(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item.start_mark.line, item
    if isinstance(node, yaml.MappingNode):
        # Of a field that is set twice, the last one counts.
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and key.value.lower() == str(step).lower():
                return key.start_mark.line, value
    return None


def _repeated_fields(root: yaml.Node) -> Sequence[yaml.ScalarNode]:
    pending, seen, found = [root], set[int](), list[yaml.ScalarNode]()
    while pending:
        node = pending.pop()
        # An alias is the node of its anchor.
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if not isinstance(node, yaml.MappingNode):
            pending += reversed(node.value)
            continue
        keys = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in keys:
                    found.append(key)
                keys.add(key.value)
        pending += reversed([value for _, value in node.value])
    return found
