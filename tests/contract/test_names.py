"""Validation of names and labels, with its messages."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.objects import config_map, pod, service


@pytest.mark.parametrize(
    ("plural", "body", "said"),
    [
        pytest.param(
            "configmaps",
            config_map("Abc"),
            (
                '422 Invalid: [FieldValueInvalid metadata.name] ConfigMap "Abc" is '
                'invalid: metadata.name: Invalid value: "Abc": a lowercase RFC 1123 '
                "subdomain must consist of lower case alphanumeric characters, '-' or "
                "'.', and must start and end with an alphanumeric character"
            ),
            id="capitals",
        ),
        pytest.param(
            "configmaps",
            config_map("a_b"),
            (
                '422 Invalid: [FieldValueInvalid metadata.name] ConfigMap "a_b" is '
                'invalid: metadata.name: Invalid value: "a_b": a lowercase RFC 1123 '
                "subdomain must consist of lower case alphanumeric characters, '-' or "
                "'.', and must start and end with an alphanumeric character"
            ),
            id="underscore",
        ),
        pytest.param(
            "configmaps",
            config_map("a..b"),
            (
                '422 Invalid: [FieldValueInvalid metadata.name] ConfigMap "a..b" is '
                'invalid: metadata.name: Invalid value: "a..b": a lowercase RFC 1123 '
                "subdomain must consist of lower case alphanumeric characters, '-' or "
                "'.', and must start and end with an alphanumeric character"
            ),
            id="two dots",
        ),
        pytest.param(
            "configmaps",
            config_map("-a"),
            (
                '422 Invalid: [FieldValueInvalid metadata.name] ConfigMap "-a" is '
                'invalid: metadata.name: Invalid value: "-a": a lowercase RFC 1123 '
                "subdomain must consist of lower case alphanumeric characters, '-' or "
                "'.', and must start and end with an alphanumeric character"
            ),
            id="starts with a dash",
        ),
        pytest.param(
            "configmaps",
            config_map("a/b"),
            (
                '422 Invalid: [FieldValueInvalid metadata.name] ConfigMap "a/b" is '
                'invalid: metadata.name: Invalid value: "a/b": a lowercase RFC 1123 '
                "subdomain must consist of lower case alphanumeric characters, '-' or "
                "'.', and must start and end with an alphanumeric character"
            ),
            id="slash",
        ),
        pytest.param(
            "configmaps",
            config_map("a" * 254),
            (
                '422 Invalid: [FieldValueInvalid metadata.name] ConfigMap "aaaaaaaaaaaaaa'
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                'aaaaaaaaaaaaaaaaaaaaaaaa" is invalid: metadata.name: Invalid value: "aaa'
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 253 '
                "characters"
            ),
            id="too long",
        ),
        pytest.param(
            "configmaps",
            config_map(""),
            (
                '422 Invalid: [FieldValueRequired metadata.name] ConfigMap "" is invalid:'
                " metadata.name: Required value: name or generateName is required"
            ),
            id="empty",
        ),
        pytest.param(
            "configmaps",
            {"data": {}},
            (
                '422 Invalid: [FieldValueRequired metadata.name] ConfigMap "" is invalid:'
                " metadata.name: Required value: name or generateName is required"
            ),
            id="none",
        ),
        pytest.param(
            "pods",
            pod("A"),
            (
                '422 Invalid: [FieldValueInvalid metadata.name] Pod "A" is invalid: '
                'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must '
                "consist of lower case alphanumeric characters, '-' or '.', and must "
                "start and end with an alphanumeric character"
            ),
            id="pod",
        ),
        pytest.param(
            "services",
            service("a" * 64),
            (
                "422 Invalid: [FieldValueInvalid metadata.name] Service "
                '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" is '
                "invalid: metadata.name: Invalid value: "
                '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must'
                " be no more than 63 characters"
            ),
            id="service too long",
        ),
        pytest.param(
            "services",
            service("a.b"),
            (
                '422 Invalid: [FieldValueInvalid metadata.name] Service "a.b" is invalid:'
                ' metadata.name: Invalid value: "a.b": must not contain dots'
            ),
            id="service with a dot",
        ),
    ],
)
async def test_malformed_name_is_invalid(api: Api, plural: str, body: object, said: str) -> None:
    answer = await api.post(api.path(plural), body)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        pytest.param(
            {"labels": {"a": "b c"}},
            (
                '422 Invalid: [FieldValueInvalid metadata.labels] ConfigMap "a" is '
                'invalid: metadata.labels: Invalid value: "b c": a valid label must be an'
                " empty string or consist of alphanumeric characters, '-', '_' or '.', "
                "and must start and end with an alphanumeric character"
            ),
            id="value",
        ),
        pytest.param(
            {"labels": {"a b": "c"}},
            (
                '422 Invalid: [FieldValueInvalid metadata.labels] ConfigMap "a" is '
                'invalid: metadata.labels: Invalid value: "a b": name part must consist '
                "of alphanumeric characters, '-', '_' or '.', and must start and end with"
                " an alphanumeric character"
            ),
            id="key",
        ),
        pytest.param(
            {"labels": {"A_/b": "c"}},
            (
                '422 Invalid: [FieldValueInvalid metadata.labels] ConfigMap "a" is '
                'invalid: metadata.labels: Invalid value: "A_/b": prefix part a lowercase'
                " RFC 1123 subdomain must consist of lower case alphanumeric characters, "
                "'-' or '.', and must start and end with an alphanumeric character"
            ),
            id="prefix",
        ),
        pytest.param(
            {"labels": {"a": "x" * 64}},
            (
                '422 Invalid: [FieldValueInvalid metadata.labels] ConfigMap "a" is '
                "invalid: metadata.labels: Invalid value: "
                '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": must'
                " be no more than 63 bytes"
            ),
            id="long value",
        ),
        pytest.param(
            {"labels": {"x" * 64: "a"}},
            (
                '422 Invalid: [FieldValueInvalid metadata.labels] ConfigMap "a" is '
                "invalid: metadata.labels: Invalid value: "
                '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": name'
                " part must be no more than 63 bytes"
            ),
            id="long key",
        ),
        pytest.param(
            {"labels": {"a/b/c": "a"}},
            (
                '422 Invalid: [FieldValueInvalid metadata.labels] ConfigMap "a" is '
                'invalid: metadata.labels: Invalid value: "a/b/c": a valid label key must'
                " consist of alphanumeric characters, '-', '_' or '.', and must start and"
                " end with an alphanumeric character with an optional DNS subdomain "
                "prefix and '/' (e.g. 'example.com/MyName')"
            ),
            id="two slashes",
        ),
        pytest.param(
            {"labels": {"": "a"}},
            (
                '422 Invalid: [FieldValueInvalid metadata.labels] ConfigMap "a" is '
                'invalid: metadata.labels: Invalid value: "": name part must be '
                'non-empty, metadata.labels: Invalid value: "": name part must consist of'
                " alphanumeric characters, '-', '_' or '.', and must start and end with "
                "an alphanumeric character"
            ),
            id="empty key",
        ),
        pytest.param(
            {"annotations": {"a b": "c"}},
            (
                '422 Invalid: [FieldValueInvalid metadata.annotations] ConfigMap "a" is '
                'invalid: metadata.annotations: Invalid value: "a b": name part must '
                "consist of alphanumeric characters, '-', '_' or '.', and must start and "
                "end with an alphanumeric character"
            ),
            id="annotation key",
        ),
        pytest.param(
            {"annotations": {"a": "x" * (256 * 1024)}},
            (
                '422 Invalid: [FieldValueTooLong metadata.annotations] ConfigMap "a" is '
                "invalid: metadata.annotations: Too long: may not be more than 262144 "
                "bytes"
            ),
            id="annotations too big",
        ),
    ],
)
async def test_malformed_labels_and_annotations_are_invalid(
    api: Api, meta: JSON, said: str
) -> None:
    answer = await api.post(api.path("configmaps"), config_map(**meta))
    assert api.failure_text(answer) == said
