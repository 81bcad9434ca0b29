"""Invalid selectors and options of lists and watches."""

import pytest

from tests.contract.api import Api
from tests.contract.definitions import V1
from tests.contract.version_marks import STREAMED_LISTS


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        pytest.param(
            "a=b=c", "400 BadRequest: found '=', expected: ',' or 'end of string'", id="a=b=c"
        ),
        pytest.param(
            "a in", "400 BadRequest: unable to parse requirement: found '' expected: '('", id="a in"
        ),
        pytest.param("a,", "400 BadRequest: found '', expected: identifier after ','", id="a,"),
        pytest.param(
            "in (x)",
            (
                "400 BadRequest: unable to parse requirement: found '(', expected: in, "
                "notin, =, ==, !=, gt, lt"
            ),
            id="in (x)",
        ),
        pytest.param(
            "n>x",
            (
                "400 BadRequest: unable to parse requirement: values[0]: Invalid value: "
                "\"x\": for 'Gt', 'Lt' operators, the value must be an integer"
            ),
            id="n>x",
        ),
        pytest.param(
            "=x",
            ("400 BadRequest: found '=', expected: !, identifier, or 'end of string'"),
            id="=x",
        ),
        pytest.param(
            "x in (1",
            ("400 BadRequest: unable to parse requirement: found '', expected: ',' or ')'"),
            id="x in (1",
        ),
        pytest.param(
            "a b",
            (
                "400 BadRequest: unable to parse requirement: found 'b', expected: in, "
                "notin, =, ==, !=, gt, lt"
            ),
            id="a b",
        ),
        pytest.param(
            "x=a b", "400 BadRequest: found 'b', expected: ',' or 'end of string'", id="x=a b"
        ),
        pytest.param(
            "x=%",
            (
                "400 BadRequest: unable to parse requirement: values[0][x]: Invalid "
                'value: "%": a valid label must be an empty string or consist of '
                "alphanumeric characters, '-', '_' or '.', and must start and end with an"
                " alphanumeric character"
            ),
            id="x=%",
        ),
        pytest.param(
            "!",
            ("400 BadRequest: unable to parse requirement: found '', expected: identifier"),
            id="!",
        ),
        pytest.param(
            "-a=1",
            (
                '400 BadRequest: unable to parse requirement: <nil>: Invalid value: "-a":'
                " name part must consist of alphanumeric characters, '-', '_' or '.', and"
                " must start and end with an alphanumeric character"
            ),
            id="-a=1",
        ),
    ],
)
async def test_malformed_label_selector_is_a_bad_request(
    api: Api, selector: str, said: str
) -> None:
    answer = await api.get(api.path("configmaps"), labelSelector=selector)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("plural", "selector", "said"),
    [
        pytest.param(
            "configmaps",
            "spec.foo=1",
            (
                '400 BadRequest: "spec.foo" is not a known field selector: only '
                '"metadata.name", "metadata.namespace"'
            ),
            id="unknown",
        ),
        pytest.param(
            "configmaps",
            "metadata.name",
            ("400 BadRequest: invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
            id="no operator",
        ),
        pytest.param(
            "pods",
            "spec.priority=0",
            "400 BadRequest: field label not supported: spec.priority",
            id="of pods",
        ),
        pytest.param(
            "gadgets",
            "spec.size=1",
            "400 BadRequest: field label not supported: spec.size",
            id="of gadgets",
        ),
        pytest.param(
            "events", "foo=1", "400 BadRequest: field label not supported: foo", id="of events"
        ),
    ],
)
async def test_malformed_field_selector_is_a_bad_request(
    gadget_api: Api, plural: str, selector: str, said: str
) -> None:
    answer = await gadget_api.get(
        gadget_api.path(plural, group=V1 if plural == "gadgets" else "v1"), fieldSelector=selector
    )
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("params", "said"),
    [
        pytest.param(
            {"resourceVersion": "x"},
            (
                "400 BadRequest: invalid resource version: resourceVersion: Invalid "
                'value: "x": strconv.ParseUint: parsing "x": invalid syntax'
            ),
            id="version",
        ),
        pytest.param(
            {"resourceVersionMatch": "Exact"},
            (
                "422 Invalid: [FieldValueForbidden resourceVersionMatch] "
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
                "resourceVersionMatch is forbidden unless resourceVersion is provided"
            ),
            id="match without version",
        ),
        pytest.param(
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            (
                "422 Invalid: [FieldValueForbidden resourceVersionMatch] "
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
                'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            ),
            id="exactly any",
        ),
        pytest.param(
            {"resourceVersionMatch": "Near", "resourceVersion": "1"},
            (
                "422 Invalid: [FieldValueNotSupported resourceVersionMatch] "
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported'
                ' value: "Near": supported values: "Exact", "NotOlderThan", ""'
            ),
            id="no such match",
        ),
        pytest.param(
            {"sendInitialEvents": "true"},
            (
                "422 Invalid: [FieldValueForbidden sendInitialEvents] "
                'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: '
                "sendInitialEvents is forbidden for list"
            ),
            id="initial events",
        ),
        pytest.param(
            {"limit": "x"},
            '400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax',
            id="limit",
        ),
        pytest.param(
            {"continue": "x"},
            (
                "400 BadRequest: invalid continue token: continue key is not valid: "
                "illegal base64 data at input byte 0"
            ),
            id="token",
        ),
        pytest.param(
            {"continue": "e30"},
            (
                "400 BadRequest: invalid continue token: continue key is not valid: "
                "server does not recognize this encoded version "
            ),
            id="token of no version",
        ),
        pytest.param(
            {"timeoutSeconds": "x"},
            '400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax',
            id="timeout",
        ),
        pytest.param(
            {"resourceVersion": "999999999"},
            (
                "504 Timeout: [ResourceVersionTooLarge] Timeout: Too large resource "
                "version: 999999999, current: VERSION"
            ),
            id="future",
        ),
    ],
)
async def test_invalid_list_option_is_rejected(api: Api, params: dict[str, str], said: str) -> None:
    answer = await api.get(api.path("configmaps"), **params)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("params", "said"),
    [
        pytest.param(
            {"resourceVersion": "x"},
            (
                '500 : resourceVersion: Invalid value: "x": strconv.ParseUint: parsing '
                '"x": invalid syntax'
            ),
            id="version",
        ),
        pytest.param(
            {"resourceVersionMatch": "NotOlderThan"},
            (
                "422 Invalid: [FieldValueForbidden resourceVersionMatch] "
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                "provided"
            ),
            id="match alone",
        ),
        pytest.param(
            {"sendInitialEvents": "true"},
            (
                "422 Invalid: [FieldValueForbidden resourceVersionMatch] "
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            ),
            id="initial events alone",
            marks=STREAMED_LISTS,
        ),
        pytest.param(
            {"sendInitialEvents": "false"},
            (
                "422 Invalid: [FieldValueForbidden resourceVersionMatch] "
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            ),
            id="no initial events",
            marks=STREAMED_LISTS,
        ),
        pytest.param(
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            (
                "422 Invalid: [FieldValueForbidden resourceVersionMatch] "
                '[FieldValueNotSupported resourceVersionMatch] ListOptions.meta.k8s.io ""'
                " is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires"
                " setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: "
                'Unsupported value: "Exact": supported values: "NotOlderThan"'
            ),
            id="exact initial events",
            marks=STREAMED_LISTS,
        ),
        pytest.param(
            {"continue": "x"},
            (
                "422 Invalid: [FieldValueForbidden resourceVersionMatch] "
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
                "resourceVersionMatch is forbidden when continue is provided"
            ),
            id="token",
            marks=STREAMED_LISTS,
        ),
        pytest.param(
            {"fieldSelector": "foo=1"},
            (
                '400 BadRequest: "foo" is not a known field selector: only '
                '"metadata.name", "metadata.namespace"'
            ),
            id="field",
        ),
        pytest.param(
            {"labelSelector": "a=b=c"},
            "400 BadRequest: found '=', expected: ',' or 'end of string'",
            id="label",
        ),
    ],
)
async def test_invalid_watch_option_is_rejected(
    api: Api, params: dict[str, str], said: str
) -> None:
    answer = await api.get(api.path("configmaps"), watch="true", timeoutSeconds="1", **params)
    assert api.failure_text(answer) == said
