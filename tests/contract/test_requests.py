"""Paths, methods and deletions that are not served."""

import pytest

from tests.contract.api import Api
from tests.contract.objects import config_map
from tests.contract.version_marks import BAD_OPTIONS_OF_A_DELETION
from tests.local.apiserver.raw_client import MERGE


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param(
            "/api/v1/namespaces/NS/configmaps/a",
            '404 NotFound: configmaps "a" not found',
            id="object",
        ),
        pytest.param(
            "/apis/contract.dlctl.dev/v1/namespaces/NS/gadgets/a",
            '404 NotFound: gadgets.contract.dlctl.dev "a" not found',
            id="gadget",
        ),
        pytest.param(
            "/api/v1/namespaces/NS/foos",
            "404 NotFound: the server could not find the requested resource",
            id="resource",
        ),
        pytest.param("/apis/foo.dev/v1/foos", "404 404 page not found", id="group"),
        pytest.param("/apis/contract.dlctl.dev/v9/gadgets", "404 404 page not found", id="version"),
        pytest.param("/foo", "404 404 page not found", id="path"),
        pytest.param(
            "/api/v1/namespaces/NS/pods/a/nope",
            "404 NotFound: the server could not find the requested resource",
            id="subresource",
        ),
        pytest.param(
            "/api/v1/namespaces/NS/configmaps/a/status",
            "404 NotFound: the server could not find the requested resource",
            id="no status",
        ),
        pytest.param(
            "/api/v1/namespaces/NS/configmaps/a/scale",
            "404 NotFound: the server could not find the requested resource",
            id="no scale",
        ),
        pytest.param(
            "/api/v1/namespaces/nope", '404 NotFound: namespaces "nope" not found', id="namespace"
        ),
        pytest.param("/apis/nope.dev", "404 404 page not found", id="group of discovery"),
    ],
)
async def test_unserved_path_is_not_found(gadget_api: Api, path: str, said: str) -> None:
    answer = await gadget_api.get(path.replace("NS", gadget_api.namespace))
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        pytest.param(
            "POST",
            "/api/v1/configmaps",
            (
                "405 MethodNotAllowed: the server does not allow this method on the "
                "requested resource"
            ),
            id="create everywhere",
        ),
        pytest.param(
            "POST",
            "/api/v1/namespaces/NS/configmaps/a",
            (
                "405 MethodNotAllowed: the server does not allow this method on the "
                "requested resource"
            ),
            id="create by name",
        ),
        pytest.param(
            "PUT",
            "/api/v1/namespaces/NS/configmaps",
            (
                "405 MethodNotAllowed: the server does not allow this method on the "
                "requested resource"
            ),
            id="update of all",
        ),
        pytest.param(
            "PATCH",
            "/api/v1/namespaces/NS/configmaps",
            (
                "405 MethodNotAllowed: the server does not allow this method on the "
                "requested resource"
            ),
            id="patch of all",
        ),
        pytest.param(
            "DELETE",
            "/api/v1/namespaces",
            (
                "405 MethodNotAllowed: the server does not allow this method on the "
                "requested resource"
            ),
            id="all namespaces deleted",
        ),
        pytest.param(
            "POST",
            "/apis/contract.dlctl.dev/v1/namespaces/NS/gadgets/a/status",
            (
                "405 MethodNotAllowed: create is not supported on resources of kind "
                '"gadgets.contract.dlctl.dev"'
            ),
            id="status created",
        ),
        pytest.param(
            "DELETE",
            "/apis/contract.dlctl.dev/v1/namespaces/NS/gadgets/a/status",
            (
                "405 MethodNotAllowed: delete is not supported on resources of kind "
                '"gadgets.contract.dlctl.dev"'
            ),
            id="status deleted",
        ),
    ],
)
async def test_unserved_method_is_not_allowed(
    gadget_api: Api, method: str, path: str, said: str
) -> None:
    answer = await gadget_api.call(
        method,
        path.replace("NS", gadget_api.namespace),
        {},
        type_=MERGE if method == "PATCH" else "",
    )
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("body", "params", "said"),
    [
        pytest.param(
            {"preconditions": {"uid": "x"}},
            {},
            (
                '409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in'
                " the precondition (x) does not match the UID in record (UID). The object"
                " might have been deleted and then recreated"
            ),
            id="uid",
        ),
        pytest.param(
            {"preconditions": {"resourceVersion": "1"}},
            {},
            (
                '409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the '
                "ResourceVersion in the precondition (1) does not match the "
                "ResourceVersion in record (VERSION). The object might have been modified"
            ),
            id="version",
        ),
        pytest.param(
            {"propagationPolicy": "X"},
            {},
            (
                "422 Invalid: [FieldValueNotSupported propagationPolicy] "
                'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported '
                'value: "X": supported values: "Foreground", "Background", "Orphan", '
                '"nil"'
            ),
            id="policy",
        ),
        pytest.param(
            None,
            {"propagationPolicy": "X"},
            (
                "422 Invalid: [FieldValueNotSupported propagationPolicy] "
                'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported '
                'value: "X": supported values: "Foreground", "Background", "Orphan", '
                '"nil"'
            ),
            id="policy of the query",
        ),
        pytest.param(
            {"orphanDependents": True, "propagationPolicy": "Orphan"},
            {},
            (
                "422 Invalid: [FieldValueInvalid propagationPolicy] "
                'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid '
                'value: "Orphan": orphanDependents and deletionPropagation cannot be both'
                " set"
            ),
            id="two policies",
        ),
        pytest.param(
            None,
            {"dryRun": "x"},
            (
                "422 Invalid: [FieldValueNotSupported dryRun] DeleteOptions.meta.k8s.io "
                '"" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"'
            ),
            id="dry run",
        ),
        pytest.param(
            {"kind": "Pod", "apiVersion": "v1"},
            {},
            '400 BadRequest: no kind "Pod" is registered for version "v1"',
            id="another kind",
            marks=BAD_OPTIONS_OF_A_DELETION,
        ),
        pytest.param(
            b"{",
            {},
            (
                "400 BadRequest: couldn't get version/kind; json parse error: unexpected "
                "end of JSON input"
            ),
            id="truncated",
            marks=BAD_OPTIONS_OF_A_DELETION,
        ),
        pytest.param(
            None,
            {"gracePeriodSeconds": "x"},
            '400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax',
            id="grace",
        ),
    ],
)
async def test_deletion_with_failing_preconditions_is_rejected(
    api: Api, body: object, params: dict[str, str], said: str
) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.delete(api.path("configmaps", "a"), body, **params)
    assert api.failure_text(answer) == said
