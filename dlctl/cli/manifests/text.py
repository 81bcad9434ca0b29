"""Manifests as YAML for people: their own order, short lists in one line, comments."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from dlctl.manifest_yaml import ManifestDumper

_WIDTH: Final = 100


def commented(manifest: Mapping[str, Any], header: Iterable[str], notes: Mapping[str, str]) -> str:
    """Return the manifest below a header; a note follows the first line with its field."""
    body = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
    lines = [*(f"# {line}".rstrip() for line in header), *_noted(body.splitlines(), dict(notes))]
    return "\n".join([*lines, ""])


def _noted(lines: Iterable[str], notes: dict[str, str]) -> Iterator[str]:
    for line in lines:
        field = line.lstrip(" -").partition(":")[0]
        note = notes.pop(field, "")
        yield f"{line}  # {note}" if note else line


class _Dumper(ManifestDumper):
    """Writes lists of scalars in one line, and text of several lines as it is."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    # Its name in PyYAML.
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    short = not any(isinstance(item, dict | list) or "\n" in str(item) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(list, _list)
_Dumper.add_representer(str, _text)
