"""Rights of service accounts, and responses to forbidden requests."""

import json
from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.field_managers import APPLY
from tests.contract.objects import pod
from tests.local.apiserver.raw_client import Answer

RBAC = "rbac.authorization.k8s.io/v1"
USER = 'User "system:serviceaccount:NAMESPACE:me"'


async def token(api: Api) -> str:
    await api.create(api.path("serviceaccounts"), {"metadata": {"name": "me"}})
    answer = await api.post(api.path("serviceaccounts", "me/token"), {"spec": {}})
    assert answer.code == 201, answer.body
    return str(answer.body["status"]["token"])


async def ask(
    api: Api, token: str, method: str, path: str, *, body: Any = None, **params: str
) -> Answer:
    """Send a request with another token than the test's."""
    headers = {"Authorization": f"Bearer {token}"}
    if body is not None:
        headers["Content-Type"] = APPLY if method == "PATCH" else "application/json"
    data = None if body is None else json.dumps(body)
    async with api.session.request(
        method, path, data=data, params=params, headers=headers
    ) as response:
        return Answer(response.status, json.loads(await response.read()), {})


async def grant(api: Api, *rules: JSON) -> None:
    await api.create(api.path("roles", group=RBAC), {"metadata": {"name": "r"}, "rules": [*rules]})
    body = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "me", "namespace": api.namespace}],
    }
    await api.create(api.path("rolebindings", group=RBAC), body)


async def until_granted(api: Api, token_: str, method: str, path: str, **request: Any) -> None:
    """Wait until a request is allowed: the real server gets roles from a watch."""
    answer = await ask(api, token_, method, path, **request)
    while answer.code == 403 and api.is_real:
        answer = await ask(api, token_, method, path, **request)
    assert answer.code < 300, answer.body


@pytest.mark.parametrize(
    ("method", "path", "params", "said"),
    [
        pytest.param(
            "GET",
            "/api/v1/namespaces/NS/pods",
            {},
            f'403 Forbidden: pods is forbidden: {USER} cannot list resource "pods" in API '
            'group "" in the namespace "NAMESPACE"',
            id="list",
        ),
        pytest.param(
            "GET",
            "/api/v1/namespaces/NS/pods",
            {"watch": "true", "fieldSelector": "metadata.name=a"},
            f'403 Forbidden: pods "a" is forbidden: {USER} cannot watch resource "pods" in '
            'API group "" in the namespace "NAMESPACE"',
            id="watch of one",
        ),
        pytest.param(
            "GET",
            "/api/v1/pods",
            {},
            f'403 Forbidden: pods is forbidden: {USER} cannot list resource "pods" in API '
            'group "" at the cluster scope',
            id="all namespaces",
        ),
        pytest.param(
            "POST",
            "/api/v1/namespaces/NS/pods/a/exec",
            {},
            f'403 Forbidden: pods "a" is forbidden: {USER} cannot create resource '
            '"pods/exec" in API group "" in the namespace "NAMESPACE"',
            id="subresource",
        ),
        pytest.param(
            "DELETE",
            "/api/v1/namespaces/NS/pods",
            {},
            f"403 Forbidden: pods is forbidden: {USER} cannot deletecollection resource "
            '"pods" in API group "" in the namespace "NAMESPACE"',
            id="all of a namespace",
        ),
        pytest.param(
            "GET",
            "/api/v1/namespaces/NS",
            {},
            f'403 Forbidden: namespaces "NAMESPACE" is forbidden: {USER} cannot get resource '
            '"namespaces" in API group "" in the namespace "NAMESPACE"',
            id="namespace",
        ),
        pytest.param(
            "GET",
            "/apis/example.com/v1/namespaces/NS/nothings",
            {},
            f"403 Forbidden: nothings.example.com is forbidden: {USER} cannot list resource "
            '"nothings" in API group "example.com" in the namespace "NAMESPACE"',
            id="what is not served",
        ),
        pytest.param(
            "GET",
            "/nowhere",
            {},
            f'403 Forbidden: forbidden: {USER} cannot get path "/nowhere"',
            id="no resource",
        ),
    ],
)
async def test_account_without_rights_is_forbidden(
    api: Api, method: str, path: str, params: dict[str, str], said: str
) -> None:
    path = path.replace("NS", api.namespace)
    answer = await ask(api, await token(api), method, path, **params)
    assert api.failure_text(answer).replace("[] ", "") == said


async def test_role_grants_its_verbs_on_its_names(api: Api) -> None:
    await api.create(api.path("pods"), pod("a"))
    mine = await token(api)
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}
    await grant(api, rule)
    await until_granted(api, mine, "GET", api.path("pods", "a"))
    for method, path in (
        ("GET", api.path("pods", "b")),
        ("GET", api.path("pods")),
        ("DELETE", api.path("pods", "a")),
    ):
        assert (await ask(api, mine, method, path)).code == 403
    assert (await ask(api, mine, "GET", "/apis")).code == 200


@pytest.mark.parametrize(
    ("name", "spec", "said"),
    [
        pytest.param("absent", {}, '404 NotFound: serviceaccounts "absent" not found', id="none"),
        pytest.param(
            "me",
            {"expirationSeconds": 5},
            "422 Invalid: [FieldValueInvalid spec.expirationSeconds] "
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 5: may not specify a duration less than 10 minutes",
            id="for a moment",
        ),
        pytest.param(
            "me",
            {"expirationSeconds": 2**40},
            "422 Invalid: [FieldValueInvalid spec.expirationSeconds] "
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 1099511627776: may not specify a duration larger than 2^32 seconds",
            id="for centuries",
        ),
        pytest.param(
            "me",
            {"expirationSeconds": "600"},
            '400 BadRequest: TokenRequest in version "v1" cannot be handled as a TokenRequest: '
            "json: cannot unmarshal string into Go struct field "
            "TokenRequestSpec.spec.expirationSeconds of type int64",
            id="for a text",
        ),
        pytest.param(
            "me",
            {"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "a"}},
            "400 BadRequest: cannot bind token to object of type batch/v1, Kind=Job",
            id="for a job",
        ),
        pytest.param(
            "me",
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}},
            '404 NotFound: pods "none" not found',
            id="for no pod",
        ),
    ],
)
async def test_invalid_token_request_is_rejected(
    api: Api, name: str, spec: JSON, said: str
) -> None:
    await api.create(api.path("serviceaccounts"), {"metadata": {"name": "me"}})
    answer = await api.post(api.path("serviceaccounts", f"{name}/token"), {"spec": spec})
    assert api.failure_text(answer).replace("[] ", "") == said


async def test_request_that_creates_an_object_needs_the_right_to_create(api: Api) -> None:
    mine = await token(api)
    await grant(
        api,
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]},
    )
    body: JSON = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    path = api.path("configmaps", "a")
    other = {**body, "metadata": {"name": "b"}}
    await api.create(api.path("configmaps"), other)
    there = api.path("configmaps", "b")
    await until_granted(api, mine, "PATCH", there, body=other, fieldManager="me")
    refused = await ask(api, mine, "PATCH", path, body=body, fieldManager="me")
    assert api.failure_text(refused).replace("[] ", "") == (
        f'403 Forbidden: configmaps "a" is forbidden: {USER} cannot create resource '
        '"configmaps" in API group "" in the namespace "NAMESPACE"'
    )
    await api.create(api.path("configmaps"), body)
    assert (await ask(api, mine, "PATCH", path, body=body, fieldManager="me")).code == 200

    lease = {"metadata": {"name": "a"}, "spec": {}}
    group = "coordination.k8s.io/v1"
    refused = await ask(api, mine, "PUT", api.path("leases", "a", group=group), body=lease)
    assert refused.code == 403
    assert "cannot create resource" in refused.body["message"]
