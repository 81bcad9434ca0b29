"""Why a text is not YAML, in plain words with the fix. Pure.

The parser names the token that it did not expect, and not the indentation that led to it.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import yaml

from dlctl.manifest_yaml import ManifestLoader

_KEY_WITHOUT_SPACE: Final = re.compile(r"\s*(?:- )*([\w.-]+):[^\s:]\S*$")
_NO_BREAK_SPACE: Final = re.compile(r"(?:^[ -]*|: *)\u00a0")
_TEMPLATE: Final = re.compile(r"(?:^|: |- ) *\{\{")
_FENCE: Final = re.compile("\\s*```")
_CONFLICT: Final = re.compile("(?:<{7}|={7}|>{7})(?: |$)")
_NEW_LINE: Final = "\n"
_NO_ANCHOR: Final = re.compile(r"found undefined alias '(.+)'")
_NO_TOKEN: Final = re.compile(r"found character '([%@`])' that cannot start any token")


def describe_yaml_error(error: yaml.YAMLError, text: str) -> str:
    """Return the place of an error and what to do about it, in one line."""
    if isinstance(error, yaml.reader.ReaderError):
        return _control_character(error, text)
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    mark, lines = error.problem_mark, text.splitlines()
    if found := _foreign(lines, mark.line, _literal_lines(text, mark.line)):
        return found
    message = _explained(error, mark, lines) or str(error.problem)
    return f"line {mark.line + 1}, column {mark.column + 1}: {message}"


def _control_character(error: yaml.reader.ReaderError, text: str) -> str:
    before = text[: error.position]
    place = f"line {before.count(_NEW_LINE) + 1}, column {len(before) - before.rfind(_NEW_LINE)}"
    return f"{place}: a control character (U+{error.character:04X}): remove it"


def _literal_lines(text: str, last: int) -> set[int]:
    """Return the lines, from 0 to about the last one, that are the text of block scalars."""
    found = set[int]()
    with suppress(yaml.YAMLError):
        for token in yaml.scan(text, Loader=ManifestLoader):
            # Not further: later documents may have errors of their own.
            if token.start_mark.line > last:
                break
            if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
                found.update(range(token.start_mark.line + 1, token.end_mark.line))
    return found


def _foreign(lines: list[str], last: int, literal: set[int]) -> str:
    """Return what the line of an error, or the one above it, has that is not YAML; or nothing."""
    for number in range(max(last - 1, 0), min(last + 1, len(lines))):
        if number in literal or lines[number].lstrip().startswith("#"):
            continue
        if found := _NO_BREAK_SPACE.search(lines[number]):
            column = found.end()
            problem = "a no-break space, as web pages have: use plain spaces"
        elif found := _TEMPLATE.search(lines[number]):
            column = found.end() - 1
            problem = "{{ }} is for templates: render it first, as with `helm template`"
        elif _FENCE.match(lines[number]):
            column, problem = 1, "``` is of Markdown: remove the line"
        elif _CONFLICT.match(lines[number]):
            column, problem = 1, "a conflict of git: choose one side, and remove its marks"
        else:
            continue
        return f"line {number + 1}, column {column}: {problem}"
    return ""


def _explained(error: yaml.MarkedYAMLError, mark: yaml.Mark, lines: list[str]) -> str:
    """Return what is wrong; empty if the parser says it well enough."""
    problem, start = error.problem or "", error.context_mark
    line = lines[mark.line] if mark.line < len(lines) else ""
    is_first = not line[: mark.column].strip()
    if "\t" in line[: mark.column + 1] and is_first:
        return "it is indented with a tab: use spaces"
    if repr("\t") in problem:
        return "a tab: use spaces"
    if problem.startswith("mapping values are not allowed"):
        return _second_colon(line[: mark.column], lines[: mark.line])
    if problem.startswith("expected <block end>") and start and is_first:
        return _misplaced(line, lines[: mark.line], start)
    if problem.startswith("expected ',' or") and start and start.line < mark.line:
        opened = lines[start.line][start.column]
        return f"a comma is missing, or the {opened} that line {start.line + 1} opens is not closed"
    if problem.startswith("could not find expected ':'") and start:
        return _no_value(start.line + 1, lines[start.line])
    if problem.startswith("found unexpected end of stream") and start:
        return f"the quote that line {start.line + 1} opens is not closed"
    if found := _NO_TOKEN.match(problem):
        return f"no value begins with {found[1]}: put it in quotes"
    return _strange_value(problem, line[: mark.column], lines[: mark.line])


def _strange_value(problem: str, before: str, above: list[str]) -> str:
    """Explain a value that YAML reads as something else, given the text before it in its line."""
    if problem.startswith("expected alphabetic or numeric character"):
        if before.startswith("%"):
            return "a line that begins with % is for parsers: put it in quotes, or remove it"
        return "* and & begin the name of an alias or anchor: put the value in quotes"
    if found := _NO_ANCHOR.match(problem):
        return f"no line above has &{found[1]}, which *{found[1]} stands for: write the value"
    if problem.startswith("expected <block end>") and before.rstrip().endswith(("'", '"')):
        return "text follows a value in quotes: put the whole value in one pair of quotes"
    if problem.startswith("expected '<document start>'") and _indent(_first_line(above)):
        return "the first line is indented: begin all fields of the object in the same column"
    return ""


def _first_line(above: list[str]) -> str:
    """Return the first line of the last document that has a value; empty if there is none."""
    first = ""
    for _, line in _upwards(above):
        if line.startswith("---"):
            break
        if line.strip() and not line.lstrip().startswith("#"):
            first = line
    return first


def _second_colon(before: str, above: list[str]) -> str:
    """Explain an unexpected colon, given the text before it in its line, and the lines above."""
    if re.search(r":\s", before):
        return "a second colon in the line: put the value in quotes"
    number, last = next((each for each in _upwards(above) if each[1].strip()), (0, ""))
    has_colon = ":" in last or last.lstrip().startswith("- ")
    if _KEY_WITHOUT_SPACE.match(last) or not has_colon:
        return _no_value(number, last)
    return (
        f"it is indented deeper than line {number}, which has a value already: "
        f"begin it in column {_column(last, is_item=False)}"
    )


def _no_value(number: int, line: str) -> str:
    """Explain a line that has no value, as the parser reads it."""
    if found := _KEY_WITHOUT_SPACE.match(line):
        return f"line {number} has no space after the colon of {found[1]}"
    return f"line {number} has no colon after its field: write NAME: VALUE"


def _misplaced(line: str, above: list[str], start: yaml.Mark) -> str:
    """Explain a line that belongs to no line above, given where the innermost one left begins."""
    is_item, place = line.lstrip().startswith("- "), f"from line {start.line + 1} on"
    if _indent(line) == start.column:
        if is_item:
            return (
                f"an item of a list among the fields of a mapping, {place}: align it with its list"
            )
        return f"a field among the items of a list, {place}: begin it with - or indent it otherwise"
    number, column = _neighbour(above, _column(line, is_item=is_item), is_item=is_item)
    begins = f"line {number}, column {column}"
    return f"its indentation matches no line above: align it with {begins}"


def _neighbour(above: list[str], column: int, *, is_item: bool) -> tuple[int, int]:
    """Return the line, of those that are still open, that begins next to a column."""
    found, outermost = list[tuple[int, int]](), len(max(above, key=len, default=""))
    for number, each in _upwards(above):
        if each.strip() and _indent(each) < outermost and not each.lstrip().startswith("#"):
            outermost = _indent(each)
            if not is_item or each.lstrip().startswith("- "):
                found.append((number, _column(each, is_item=is_item)))
    return min([*found, (1, 1)], key=lambda place: abs(place[1] - column))


def _upwards(lines: list[str]) -> Iterator[tuple[int, str]]:
    return reversed([*enumerate(lines, 1)])


def _column(line: str, *, is_item: bool) -> int:
    """Return the column, from 1, of the item that a line begins, or of its first field."""
    return 1 + (_indent(line) if is_item else len(line) - len(line.lstrip(" -")))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
