"""Malformed YAML is explained by the line to change, not by the token that a parser misses."""

import pytest
import yaml

from dlctl.cli.manifests.yaml_errors import describe_yaml_error
from dlctl.cli.manifests.yaml_lines import documents


def test_later_documents_that_are_nested_too_deeply_do_not_matter() -> None:
    text = "? [a]\n: 1\n---\n" + "[" * 1200
    with pytest.raises(yaml.YAMLError) as raised:
        list(documents(text))
    assert describe_yaml_error(raised.value, text).startswith("line 1, column 3: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "metadata:\n\tname: a\n",
            "line 2, column 1: it is indented with a tab: use spaces",
            id="tab",
        ),
        pytest.param(
            "metadata:\n  namespace: ***\n",
            "line 2, column 15: * and & begin the name of an alias or anchor: put the value in "
            "quotes",
            id="asterisks",
        ),
        pytest.param(
            "volumes: *data\n",
            "line 1, column 10: no line above has &data, which *data stands for: write the value",
            id="alias of nothing",
        ),
        pytest.param(
            'args:\n  - "--optimizer"="adam"\n',
            "line 2, column 18: text follows a value in quotes: put the whole value in one pair "
            "of quotes",
            id="text after quotes",
        ),
        pytest.param(
            " apiVersion: v1\nkind: Pod\n",
            "line 2, column 1: the first line is indented: begin all fields of the object in the "
            "same column",
            id="first line",
        ),
        pytest.param(
            "kind: A\n---\n  kind: B\nspec: {}\n",
            "line 4, column 1: the first line is indented: begin all fields of the object in the "
            "same column",
            id="first line of a later document",
        ),
        pytest.param(
            "  # A pod.\nkind: Pod\n...\nkind: Pod\n",
            "line 4, column 1: expected '<document start>', but found '<block mapping start>'",
            id="comment above the first line",
        ),
        pytest.param(
            "% Total\nkind: Pod\n",
            "line 1, column 2: a line that begins with % is for parsers: put it in quotes, or "
            "remove it",
            id="percent sign",
        ),
        pytest.param("- \tname: a\n", "line 1, column 3: a tab: use spaces", id="tab in a line"),
        pytest.param(
            "spec:\n  replicas: 1\n   template: {}\n",
            "line 3, column 12: it is indented deeper than line 2, which has a value already: "
            "begin it in column 3",
            id="too deep",
        ),
        pytest.param(
            "containers:\n  - name: a\n   image: b\n",
            "line 3, column 4: its indentation matches no line above: align it with line 2, "
            "column 5",
            id="between",
        ),
        pytest.param(
            "spec:\n    a:\n      b: {}\n  c: {}\n",
            "line 4, column 3: its indentation matches no line above: align it with line 2, "
            "column 5",
            id="not deep enough",
        ),
        pytest.param(
            "args:\n    - a\n  - b\n",
            "line 3, column 3: its indentation matches no line above: align it with line 2, "
            "column 5",
            id="item not deep enough",
        ),
        pytest.param(
            "spec:\n  - a\n  b: c\n",
            "line 3, column 3: a field among the items of a list, from line 2 on: begin it with - "
            "or indent it otherwise",
            id="field in a list",
        ),
        pytest.param(
            "a:\n  b: c\n  - d\n",
            "line 3, column 3: an item of a list among the fields of a mapping, from line 2 on: "
            "align it with its list",
            id="item in a mapping",
        ),
        pytest.param(
            "metadata:\n  name:train\n  labels: {}\n",
            "line 3, column 9: line 2 has no space after the colon of name",
            id="no space",
        ),
        pytest.param(
            "containers:\n  - name: a\n    image:my/train:1\n    command: [a]\n",
            "line 4, column 5: line 3 has no space after the colon of image",
            id="no space after another field",
        ),
        pytest.param(
            "metadata:\n  name train\n  labels: {}\n",
            "line 3, column 9: line 2 has no colon after its field: write NAME: VALUE",
            id="no colon",
        ),
        pytest.param(
            "metadata: {}\nname\n",
            "line 3, column 1: line 2 has no colon after its field: write NAME: VALUE",
            id="no colon at the end",
        ),
        pytest.param(
            "name: a: b\n",
            "line 1, column 8: a second colon in the line: put the value in quotes",
            id="two colons",
        ),
        pytest.param(
            "name: 'a\nb: c\n",
            "line 3, column 1: the quote that line 1 opens is not closed",
            id="open quote",
        ),
        pytest.param(
            "name: @a\n",
            "line 1, column 7: no value begins with @: put it in quotes",
            id="reserved character",
        ),
        pytest.param(
            "name: [a}\n", "line 1, column 9: expected ',' or ']', but got '}'", id="in brackets"
        ),
        pytest.param(
            "metadata:\n  labels: {a: b,\n\tc: d\nspec: {}\n",
            "line 4, column 5: a comma is missing, or the { that line 2 opens is not closed",
            id="open brace",
        ),
        pytest.param(
            'name: "a" b\n',
            "line 1, column 11: text follows a value in quotes: put the whole value in one pair "
            "of quotes",
            id="after a quote",
        ),
        pytest.param(
            "spec:\n  a:\n\u00a0\u00a0\u00a0\u00a0b: 2\n  c: 1\n",
            "line 3, column 1: a no-break space, as web pages have: use plain spaces",
            id="no-break space",
        ),
        pytest.param(
            "metadata:\n  name:\u00a0a\n  labels: {}\n",
            "line 2, column 8: a no-break space, as web pages have: use plain spaces",
            id="no-break space in a line above",
        ),
        pytest.param(
            "metadata:\n  name: {{ .Release.Name }}\n",
            "line 2, column 9: {{ }} is for templates: render it first, as with `helm template`",
            id="Helm's value",
        ),
        pytest.param(
            "a: 1\n{{- if .Values.x }}\nb: 2\n{{- end }}\n",
            "line 2, column 1: {{ }} is for templates: render it first, as with `helm template`",
            id="Helm's condition",
        ),
        pytest.param(
            "a: |\n  {{ x }}\n  b:\u00a0c\nd: e: f\n",
            "line 4, column 5: a second colon in the line: put the value in quotes",
            id="below a text with a template",
        ),
        pytest.param(
            "# a: {{ x }}\nd: e: f\n",
            "line 2, column 5: a second colon in the line: put the value in quotes",
            id="below a comment with a template",
        ),
        pytest.param(
            "a: |\n  {{ x }}\nb: {{ y }}\n",
            "line 3, column 4: {{ }} is for templates: render it first, as with `helm template`",
            id="template below a text",
        ),
        pytest.param(
            "a: 1\nb: x\x07y\n",
            "line 2, column 5: a control character (U+0007): remove it",
            id="control character",
        ),
        pytest.param(
            "```yaml\na: 1\n```\n",
            "line 1, column 1: ``` is of Markdown: remove the line",
            id="fence of Markdown",
        ),
        pytest.param(
            "a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> other\n",
            "line 2, column 1: a conflict of git: choose one side, and remove its marks",
            id="conflict of a merge",
        ),
    ],
)
def test_error_names_the_line_and_the_fix(text: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError) as raised:
        list(documents(text))
    assert describe_yaml_error(raised.value, text) == message
