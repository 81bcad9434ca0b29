"""Which Roles and ClusterRoles are rejected."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api

RBAC = "rbac.authorization.k8s.io/v1"
SELECTORS = "aggregationRule.clusterRoleSelectors"


def role(*rules: JSON) -> JSON:
    return {"rules": list(rules)}


def aggregating(*selectors: JSON) -> JSON:
    return {"aggregationRule": {"clusterRoleSelectors": list(selectors)}}


def requirement(**fields: object) -> JSON:
    return aggregating({"matchExpressions": [{"key": "a", **fields}]})


RULES = [
    pytest.param(
        role({"apiGroups": [""], "resources": ["pods"]}),
        "rules[0].verbs: Required value: verbs must contain at least one value",
        id="no verbs",
    ),
    pytest.param(
        role({"verbs": ["get"], "resources": ["pods"]}),
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        id="no groups",
    ),
    pytest.param(
        role({"verbs": ["get"], "apiGroups": [""]}),
        "rules[0].resources: Required value: resource rules must supply at least one resource",
        id="no resources",
    ),
    pytest.param(
        role({"verbs": ["get"], "resources": ["pods"], "nonResourceURLs": ["/x"]}),
        "rules cannot apply to both regular resources and non-resource URLs",
        id="resources and paths",
    ),
]
AGGREGATIONS = [
    pytest.param(
        {"aggregationRule": {}},
        f"{SELECTORS}: Required value: at least one clusterRoleSelector required if "
        "aggregationRule is non-nil",
        id="no selectors",
    ),
    pytest.param(
        aggregating({"matchLabels": {"a": "c d"}}),
        f'{SELECTORS}[0].matchLabels: Invalid value: "c d": a valid label must be',
        id="value of a label",
    ),
    pytest.param(
        requirement(operator="X"),
        f'{SELECTORS}[0].matchExpressions[0].operator: Invalid value: "X": not a valid selector',
        id="operator",
    ),
    pytest.param(
        requirement(operator="In"),
        f"{SELECTORS}[0].matchExpressions[0].values: Required value: must be specified when",
        id="no values",
    ),
    pytest.param(
        requirement(operator="Exists", values=["b"]),
        f"{SELECTORS}[0].matchExpressions[0].values: Forbidden: may not be specified when",
        id="values without effect",
    ),
    pytest.param(
        requirement(key="a b", operator="Exists"),
        f'{SELECTORS}[0].matchExpressions[0].key: Invalid value: "a b": name part must consist',
        id="name of a label",
    ),
]
PATHS = role({"verbs": ["get"], "nonResourceURLs": ["/x"]})


@pytest.mark.parametrize(("fields", "said"), [*RULES, *AGGREGATIONS])
async def test_invalid_cluster_role_is_rejected(api: Api, fields: JSON, said: str) -> None:
    wire = {"metadata": {"name": f"{api.namespace}-invalid"}, **fields}
    answer = await api.post(f"/apis/{RBAC}/clusterroles", wire)
    assert answer.code == 422
    assert said in answer.body["message"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        *RULES,
        pytest.param(PATHS, "namespaced rules cannot apply to non-resource URLs", id="paths"),
    ],
)
async def test_invalid_role_is_rejected(api: Api, fields: JSON, said: str) -> None:
    path = api.path("roles", group=RBAC)
    answer = await api.post(path, {"metadata": {"name": "invalid"}, **fields})
    assert answer.code == 422
    assert said in answer.body["message"]


async def test_cluster_role_may_grant_paths(api: Api) -> None:
    wire = {"metadata": {"name": f"{api.namespace}-paths"}, **PATHS}
    await api.create(f"/apis/{RBAC}/clusterroles", wire)
    await api.delete(f"/apis/{RBAC}/clusterroles/{api.namespace}-paths")
