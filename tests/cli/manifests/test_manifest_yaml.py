"""Scalars and keys as kubectl reads them; the expected values are those of kubectl 1.32."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dlctl.cli.manifests.yaml_lines import documents, line_of
from dlctl.manifest_yaml import ManifestDumper, ManifestLoader, load
from tests.support.command_line import Dlctl


def loaded(text: str) -> Any:
    return next(documents(text)).value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, 0.001) for text in ("1e-3", "1E-3", ".1e-2", "+.001", "0.001")),
        *((text, 100_000) for text in ("1e5", "1e+5", "100_000", "100000.0", "100000.", "1_0e4")),
        *((text, 15) for text in ("15", "0xF", "0XF", "017", "0o17", "0b1111", "1_5", "+15")),
        *((text, -7) for text in ("-7", "-0o7", "-07", "-0b111")),
        *((text, 89) for text in ("089", "0_89")),
        *((text, True) for text in ("y", "Y", "yes", "on", "On", "true", "TRUE")),
        *((text, False) for text in ("n", "N", "no", "off", "OFF", "False")),
        *((text, None) for text in ("~", "null", "Null", "NULL")),
    ],
)
def test_plain_scalar_is_what_kubectl_reads(text: str, value: object) -> None:
    read = loaded(f"a: {text}")["a"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "12:30:00", "1:30", "190:20:30.15", "2001-01-01", "2001-01-01T00:00:00Z", "=", "1e", "0x",
        "0o8", "0b12", "._5", "1e5.0", "1e400", "+", ".", "yEs", "nULL", "_1", "1-1", "0x1p-2",
    ],
)  # fmt: skip
def test_other_plain_scalar_is_text(text: str) -> None:
    assert loaded(f"a: {text}") == {"a": text}


def test_quoted_scalar_is_text() -> None:
    assert loaded("a: ['y', \"1e5\", !!str 5]") == {"a": ["y", "1e5", "5"]}


@pytest.mark.parametrize("digits", ["9" * 19, "1" + "0" * 40, "1e308", "1e20"])
def test_number_beyond_64_bits_is_a_float_as_in_kubectl(digits: str) -> None:
    value = loaded(f"a: {digits}")["a"]
    assert (type(value), value) == (float, float(digits))


@pytest.mark.parametrize("text", ["0x" + "f" * 4000, "0b" + "1" * 65, "9" * 5000])
def test_number_that_is_none_of_json_is_text(text: str) -> None:
    assert loaded(f"a: {text}") == {"a": text}


@pytest.mark.parametrize("text", ["!!map [1]", "!!map x", "&x [*x]", "&x {a: *x}"])
def test_value_without_a_form_in_json_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        loaded(f"a: {text}")


def test_tag_of_a_time_is_ignored() -> None:
    assert loaded("a: !!timestamp x") == {"a": "x"}


def test_keys_are_text() -> None:
    text = "{y: a, 1: b, 1.5: c, no: d, 0x10: e, 2001-01-01: f}"
    assert loaded(text) == {
        "true": "a", "1": "b", "1.5": "c", "false": "d", "16": "e", "2001-01-01": "f"
    }  # fmt: skip


@pytest.mark.parametrize("key", ["[a]", "{a: b}", "!!set {a}"])
def test_key_of_several_values_is_refused(key: str) -> None:
    with pytest.raises(yaml.YAMLError, match="cannot be the name of a field"):
        load(f"? {key}\n: 1\n")


def test_anchors_and_merges_work() -> None:
    assert loaded("a: &a {x: 1}\nb: {<<: *a, z: 2}")["b"] == {"x": 1, "z": 2}


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan"])
def test_number_that_json_lacks_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="JSON has no number") as raised:
        loaded(f"a: 1\nb: {text}")
    mark = raised.value.problem_mark
    assert mark is not None
    assert mark.line == 1


@pytest.mark.parametrize("text", ["y", "n", "1e-3", "1e5", "0o17", "12:30:00", "2001-01-01", "="])
def test_written_text_is_read_as_text(text: str) -> None:
    written = yaml.dump({text: text}, Dumper=ManifestDumper)
    assert yaml.safe_load(written) == yaml.load(written, ManifestLoader) == {text: text}


JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: train}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: {replicas}
      template:
        spec:
          containers:
            - {{name: pytorch, image: any, command: [train], {field}}}
"""


@pytest.mark.parametrize(
    ("field", "message"),
    [
        pytest.param("args: [--lr, 1e-3]", "args[1]", id="float"),
        pytest.param("env: [{name: A, value: 1e5}]", "env[0].value", id="integral float"),
        pytest.param("env: [{name: A, value: y}]", "env[0].value", id="boolean"),
    ],
)
def test_check_refuses_what_kubectl_reads_as_no_text(
    dlctl: Dlctl, tmp_path: Path, field: str, message: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.format(replicas=1, field=field))
    done = dlctl("check", str(path))
    assert done.code == 1
    assert message in done.out


def test_check_accepts_what_kubectl_reads_as_the_right_type(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.format(replicas="2.0", field="env: [{name: A, value: 12:30:00}]"))
    assert dlctl("check", str(path)).code == 0


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\t\nb: c\t# d\n", {"a": 1, "b": "c"}),
        ('a: "1" \t\nb:\t2\n', {"a": "1", "b": 2}),
        ("a:\t\n  b: 1\n", {"a": {"b": 1}}),
        ("a: [\n\t\tb\t,\n\tc\n\t]\n", {"a": ["b", "c"]}),
        ("a: b \tc\n", {"a": "b \tc"}),
        ("a: b\t\n  c\n", {"a": "b c"}),
        ("a: |\t\n  b\n", {"a": "b\n"}),
        ("a: >-\t # c\n  b\n", {"a": "b"}),
        ("a:\t|2-\t\t# c\n   b\n", {"a": " b"}),
        ("a: |+1# c\n b\n\n", {"a": "b\n\n"}),
    ],
)
def test_tab_may_separate_and_follow_values(text: str, value: object) -> None:
    assert loaded(text) == value


@pytest.mark.parametrize("header", ["|x", "|\tx", "|0", "|11", "|+-", "|\t-"])
def test_header_of_a_block_of_text_has_no_other_indicators(header: str) -> None:
    with pytest.raises(yaml.YAMLError, match="expected a comment or a line break"):
        loaded(f"a: {header}\n  b\n")


@pytest.mark.parametrize("escape", ["\\ud83d\\ude00", "\\udfff", "\\U00110000", "\\UFFFFFFFF"])
def test_escape_of_no_character_is_refused_with_its_line(escape: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="write the character itself") as raised:
        loaded(f'a: b\nc: "{escape}"\n')
    assert raised.value.problem_mark is not None
    assert raised.value.problem_mark.line == 1


@pytest.mark.parametrize("text", ["a:\n\tb: 1\n", "-\ta: 1\n", "a: 1\n\t\nb: 2\n", "a: 1\n\t# b\n"])
def test_tab_may_not_indent(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        loaded(text)


@pytest.mark.parametrize(
    ("text", "values", "lines"),
    [
        pytest.param(
            '{\n\t"kind": "A",\n\t"b": [\n\t\t1.0\n\t]\n}\n',
            [{"kind": "A", "b": [1]}],
            [3],
            id="tabs",
        ),
        pytest.param(
            '\n{"b": 1}\n{"b":\t2}{"b": 3}\n',
            [{"b": 1}, {"b": 2}, {"b": 3}],
            [2, 3, 3],
            id="stream",
        ),
        pytest.param('{"b": "\\ud83d\\ude00\\t"}', [{"b": "\U0001f600\t"}], [1], id="escapes"),
        pytest.param(
            '{"b": ["\\ud83d", "a\\ude00"]}', [{"b": ["\ufffd", "a\ufffd"]}], [1], id="half"
        ),
        pytest.param('\ufeff{"b": 1}', [{"b": 1}], [1], id="byte order mark"),
        pytest.param('{"b": Infinity}', [{"b": "Infinity"}], [1], id="no number of JSON"),
        pytest.param("{b: yes}\n---\n{b: no}\n", [{"b": True}, {"b": False}], [1, 3], id="YAML"),
    ],
)
def test_json_is_read_as_kubectl_does(text: str, values: list[Any], lines: list[int]) -> None:
    read = list(documents(text))
    assert [each.value for each in read] == values
    assert [line_of(each.node, ("b",)) for each in read] == lines


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param('{\n\t"a": 1,\n\t"a": 2\n}', [("a", 3)], id="JSON"),
        pytest.param('{"b": 1}\n{"a": 1, "a": 2}', [("a", 2)], id="JSON stream"),
        pytest.param("a: 1\na: 2\na: 3\n", [("a", 2), ("a", 3)], id="three times"),
        pytest.param("l:\n- {a: 1, a: 2}\nb: 1\nb: 1\n", [("b", 4), ("a", 2)], id="nested"),
        pytest.param("x: &x {a: 1}\ny:\n  <<: *x\n  a: 2\n", [], id="merged"),
        pytest.param("l:\n- a: 1\n- a: 1\n", [], id="in two items"),
    ],
)
def test_field_that_is_set_twice_is_found_with_its_line(
    text: str, found: list[tuple[str, int]]
) -> None:
    keys = [key for document in documents(text) for key in document.repeated]
    assert [(key.value, key.start_mark.line + 1) for key in keys] == found


def test_last_of_two_equal_fields_counts() -> None:
    values = [
        each.value for text in ("a: 1\na: 2\n", '{"a": 1, "a": 2}') for each in documents(text)
    ]
    assert values == [{"a": 2}, {"a": 2}]


@pytest.mark.parametrize("text", ["7", "-3", "1.0", "1e2", "0.5", "9" * 19, "9" * 400, "-0.0"])
def test_number_in_json_is_the_one_in_yaml(text: str) -> None:
    of_json, of_yaml = ([one.value for one in documents(each)] for each in (
        f'{{"a": {text}}}', f"a: {text}\n"
    ))  # fmt: skip
    assert repr(of_json) == repr(of_yaml)


@pytest.mark.timeout(10)
def test_open_brackets_without_end_are_rejected_at_once() -> None:
    with pytest.raises(RecursionError):
        load("a: " + "[" * 20_000)
