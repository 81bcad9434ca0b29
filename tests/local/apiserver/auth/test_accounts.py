"""Service accounts: tokens and rights."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import attrs
import pytest

from tests.local.apiserver.raw_client import PODS, Answer, RawClient, pod

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RIGHTS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
ME = {"kind": "ServiceAccount", "name": "me", "namespace": "default"}


@asynccontextmanager
async def client(api: RawClient, token: str) -> AsyncIterator[RawClient]:
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(api.server.url, headers=headers) as session:
        yield attrs.evolve(api, session=session)


async def token(api: RawClient, name: str = "me", **spec: Any) -> str:
    answer = await api.post(f"{ACCOUNTS}/{name}/token", {"spec": spec})
    assert answer.code == 201, answer.body
    return str(answer.body["status"]["token"])


@pytest.fixture
async def me(api: RawClient) -> AsyncIterator[RawClient]:
    """The same server for a service account that has no rights yet."""
    await api.create(ACCOUNTS, {"metadata": {"name": "me"}})
    await api.create(PODS, pod("a"))
    async with client(api, await token(api)) as mine:
        yield mine


async def grant(api: RawClient, *rules: dict[str, Any], subject: dict[str, str] = ME) -> None:
    role = {"metadata": {"name": "some"}, "rules": list(rules)}
    await api.create(f"{RBAC}/namespaces/default/roles", role)
    await bind(api, "namespaces/default/rolebindings", "Role", "some", subject)


async def bind(api: RawClient, path: str, kind: str, name: str, subject: dict[str, str]) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    body = {"metadata": {"name": "some"}, "roleRef": reference, "subjects": [subject]}
    await api.create(f"{RBAC}/{path}", body)


def rule(*verbs: str, resources: str = "pods", **more: Any) -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": [""], "resources": [resources], **more}


def why(answer: Answer) -> str:
    assert answer.code == 403, answer.body
    return str(answer.body["message"])


async def test_forbidden_response_names_the_missing_right(me: RawClient) -> None:
    user = 'User "system:serviceaccount:default:me"'
    assert why(await me.get(f"{PODS}/a")) == (
        f'pods "a" is forbidden: {user} cannot get resource "pods" in API group "" '
        'in the namespace "default"'
    )
    assert why(await me.get("/api/v1/pods", watch="true")) == (
        f'pods is forbidden: {user} cannot watch resource "pods" in API group "" '
        "at the cluster scope"
    )
    assert why(await me.post(f"{PODS}/a/exec", {})) == (
        f'pods "a" is forbidden: {user} cannot create resource "pods/exec" in API group "" '
        'in the namespace "default"'
    )
    assert why(await me.get("/nowhere")) == f'forbidden: {user} cannot get path "/nowhere"'
    assert (await me.get("/apis")).code == 200


async def test_role_grants_its_verbs_on_its_resources_and_names(
    api: RawClient, me: RawClient
) -> None:
    named = rule("get", resourceNames=["a"])
    await grant(api, named, rule("create", resources="pods/exec"))
    assert (await me.get(f"{PODS}/a")).code == 200
    assert (await me.get(f"{PODS}/b")).code == 403
    assert (await me.get(PODS)).code == 403
    assert (await me.delete(f"{PODS}/a")).code == 403
    # Granted: it is rejected for another reason.
    assert (await me.get(f"{PODS}/a/exec", command="sh", stdout="true")).code == 400


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(ME, id="account"),
        pytest.param({"kind": "User", "name": "system:serviceaccount:default:me"}, id="user"),
        pytest.param({"kind": "Group", "name": "system:serviceaccounts:default"}, id="group"),
    ],
)
async def test_cluster_role_grants_in_the_namespace_of_its_binding(
    api: RawClient, me: RawClient, subject: dict[str, str]
) -> None:
    await bind(api, "namespaces/default/rolebindings", "ClusterRole", "cluster-admin", subject)
    assert (await me.get(PODS)).code == 200
    assert (await me.get("/api/v1/pods")).code == 403


async def test_cluster_wide_binding_grants_everywhere(api: RawClient, me: RawClient) -> None:
    await bind(api, "clusterrolebindings", "ClusterRole", "cluster-admin", ME)
    assert (await me.get("/api/v1/pods")).code == 200
    assert (await me.get("/api/v1/nodes")).code == 200


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        pytest.param("view", {"pods"}, id="view"),
        pytest.param("edit", {"pods", "secrets", "new pod"}, id="edit"),
        pytest.param("admin", {"pods", "secrets", "new pod", "new role"}, id="admin"),
    ],
)
async def test_default_cluster_roles_grant_what_they_do_on_a_cluster(
    api: RawClient, me: RawClient, role: str, allowed: set[str]
) -> None:
    await bind(api, "namespaces/default/rolebindings", "ClusterRole", role, ME)
    own_role = {"metadata": {"name": "own"}, "rules": []}
    answers = {
        "pods": await me.get(PODS),
        "secrets": await me.get("/api/v1/namespaces/default/secrets"),
        "new pod": await me.post(PODS, pod("b")),
        "new role": await me.post(f"{RBAC}/namespaces/default/roles", own_role),
    }
    assert {name for name, answer in answers.items() if answer.code < 400} == allowed
    assert {answer.code for answer in answers.values()} <= {200, 201, 403}


async def test_cluster_role_grants_what_those_grant_that_it_aggregates(
    api: RawClient, me: RawClient
) -> None:
    await bind(api, "namespaces/default/rolebindings", "ClusterRole", "edit", ME)
    jobs = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
    assert (await me.get(jobs)).code == 403
    prefix = "rbac.authorization.k8s.io/aggregate-to"
    rules = [{"verbs": ["list"], "apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"]}]
    # It selects itself, too.
    selector = {"matchExpressions": [{"key": f"{prefix}-edit", "operator": "Exists"}]}
    more = {"matchLabels": {f"{prefix}-first": "true"}}
    first = {
        "metadata": {"name": "first", "labels": {f"{prefix}-edit": "true"}},
        "aggregationRule": {"clusterRoleSelectors": [selector, more]},
        "rules": rules,
    }
    await api.create(f"{RBAC}/clusterroles", first)
    # What is stored in it does not count.
    assert (await me.get(jobs)).code == 403
    labels = {f"{prefix}-first": "true"}
    second = {"metadata": {"name": "second", "labels": labels}, "rules": rules}
    await api.create(f"{RBAC}/clusterroles", second)
    assert (await me.get(jobs)).code != 403


@pytest.mark.parametrize("operator", ["In", "NotIn", "exists", ""])
async def test_malformed_aggregation_rule_grants_nothing(
    api: RawClient, me: RawClient, operator: str
) -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": operator}]}
    rule = {"clusterRoleSelectors": [selector]}
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "aggregationRule": rule})
    await bind(api, "clusterrolebindings", "ClusterRole", "all", ME)
    assert (await me.get(PODS)).code == 403


async def test_binding_to_a_missing_role_grants_nothing(api: RawClient, me: RawClient) -> None:
    path = "namespaces/default/rolebindings"
    await bind(api, path, "Role", "absent", ME)
    assert (await me.get(PODS)).code == 403


async def test_reviews_are_about_the_requesting_account(api: RawClient, me: RawClient) -> None:
    await grant(api, rule("list"))

    async def may(verb: str) -> bool:
        wish = {"verb": verb, "resource": "pods", "namespace": "default"}
        answer = await me.post(REVIEWS, {"spec": {"resourceAttributes": wish}})
        return bool(answer.body["status"]["allowed"])

    assert await may("list")
    assert not await may("delete")
    who = await me.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert who.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:me"


async def test_rights_of_an_account_are_listed(api: RawClient, me: RawClient) -> None:
    granted = rule("get", resourceNames=["a"])
    await grant(api, granted)

    answer = await me.post(RIGHTS, {"spec": {"namespace": "default"}})
    elsewhere = await me.post(RIGHTS, {"spec": {"namespace": "other"}})

    assert granted in answer.body["status"]["resourceRules"]
    assert granted not in elsewhere.body["status"]["resourceRules"]
    assert "/apis/*" in answer.body["status"]["nonResourceRules"][0]["nonResourceURLs"]
    assert (await me.post(RIGHTS, {"spec": {}})).body["message"] == "no namespace on request"


async def test_account_may_review_itself_and_no_other(me: RawClient) -> None:
    other = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    wish = {"verb": "create", "resource": "selfsubjectrulesreviews"}
    wish["group"] = "authorization.k8s.io"

    answer = await me.post(REVIEWS, {"spec": {"resourceAttributes": wish}})

    assert answer.body["status"]["allowed"]
    assert (await me.post(other, {"spec": {"user": "ann"}})).code == 403


async def test_token_is_invalidated_with_its_account_or_pod(api: RawClient, me: RawClient) -> None:
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "a"}
    async with client(api, await token(api, boundObjectRef=reference)) as bound:
        assert (await bound.get("/apis")).code == 200
        await api.delete(f"{PODS}/a")
        assert (await bound.get("/apis")).code == 401
    assert (await me.get("/apis")).code == 200
    await api.delete(f"{ACCOUNTS}/me")
    assert (await me.get("/apis")).code == 401


async def test_tampered_token_is_rejected(api: RawClient, me: RawClient) -> None:
    good = await token(api)
    head, body, signature = good.split(".")
    for bad in (f"{head}.{body[:-2]}xx.{signature}", f"{head}.{body}.", "..", "", good[:-1]):
        async with client(api, bad) as unauthorized:
            assert (await unauthorized.get("/apis")).code == 401, bad


@pytest.mark.parametrize(
    ("name", "spec", "code", "said"),
    [
        ("absent", {}, 404, 'serviceaccounts "absent" not found'),
        (
            "me",
            {"boundObjectRef": {"kind": "Pod", "name": "none"}},
            404,
            'pods "none" not found',
        ),
        (
            "me",
            {"expirationSeconds": 5},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
                "value: 5: may not specify a duration less than 10 minutes"
            ),
        ),
    ],
)
async def test_invalid_token_request_is_rejected(
    api: RawClient, me: RawClient, name: str, spec: dict[str, Any], code: int, said: str
) -> None:
    answer = await api.post(f"{ACCOUNTS}/{name}/token", {"spec": spec})
    assert (answer.code, answer.body["message"]) == (code, said)


async def test_admin_can_impersonate(api: RawClient, me: RawClient) -> None:
    somebody = {"Impersonate-User": "ann", "Impersonate-Group": "readers"}
    headers = {"Authorization": f"Bearer {api.server.token}"} | somebody
    async with aiohttp.ClientSession(api.server.url, headers=headers) as session:
        ann = attrs.evolve(api, session=session)
        assert 'User "ann" cannot list' in why(await ann.get(PODS))
        await grant(api, rule("list"), subject={"kind": "Group", "name": "readers"})
        assert (await ann.get(PODS)).code == 200


async def test_account_without_the_right_cannot_impersonate(me: RawClient) -> None:
    async with me.session.get(PODS, headers={"Impersonate-User": "ann"}) as answer:
        said = (await answer.json())["message"]
    assert said == (
        'users "ann" is forbidden: User "system:serviceaccount:default:me" cannot impersonate '
        'resource "users" in API group "" at the cluster scope'
    )
