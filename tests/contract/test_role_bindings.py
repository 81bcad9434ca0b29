"""Which RoleBindings and ClusterRoleBindings are rejected, and whom they grant rights."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.test_accounts import token, until_granted

GROUP = "rbac.authorization.k8s.io"
RBAC = f"{GROUP}/v1"
USER = {"kind": "User", "name": "ann"}
ACCOUNT = {"kind": "ServiceAccount", "name": "me", "namespace": "default"}


def binding(*subjects: JSON, kind: str = "ClusterRole", **role: str) -> JSON:
    role_ref = {"apiGroup": GROUP, "kind": kind, "name": "view", **role}
    return {"metadata": {"name": "b"}, "roleRef": role_ref, "subjects": list(subjects)}


INVALID = [
    pytest.param(
        binding(apiGroup="example.com"),
        "FieldValueNotSupported roleRef.apiGroup",
        f'roleRef.apiGroup: Unsupported value: "example.com": supported values: "{GROUP}"',
        id="group of the role",
    ),
    pytest.param(
        binding(name=""),
        "FieldValueRequired roleRef.name",
        "roleRef.name: Required value",
        id="no name",
    ),
    pytest.param(
        binding(name="a/b"),
        "FieldValueInvalid roleRef.name",
        "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
        id="name of the role",
    ),
    pytest.param(
        binding({"kind": "Robot", "name": "r2"}),
        "FieldValueNotSupported subjects[0].kind",
        'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", '
        '"Group"',
        id="kind of a subject",
    ),
    pytest.param(
        binding({**USER, "apiGroup": "example.com"}),
        "FieldValueNotSupported subjects[0].apiGroup",
        f'subjects[0].apiGroup: Unsupported value: "example.com": supported values: "{GROUP}"',
        id="group of a user",
    ),
    pytest.param(
        binding(USER, {**ACCOUNT, "apiGroup": GROUP}),
        "FieldValueNotSupported subjects[1].apiGroup",
        f'subjects[1].apiGroup: Unsupported value: "{GROUP}": supported values: ""',
        id="group of an account",
    ),
    pytest.param(
        binding({"kind": "Group", "name": ""}),
        "FieldValueRequired subjects[0].name",
        "subjects[0].name: Required value",
        id="no subject",
    ),
]


@pytest.mark.parametrize(
    ("wire", "cause", "said"),
    [
        *INVALID,
        pytest.param(
            binding(kind="Roll"),
            "FieldValueNotSupported roleRef.kind",
            'roleRef.kind: Unsupported value: "Roll": supported values: "Role", "ClusterRole"',
            id="kind of the role",
        ),
    ],
)
async def test_invalid_role_binding_is_rejected(
    api: Api, wire: JSON, cause: str, said: str
) -> None:
    answer = await api.post(api.path("rolebindings", group=RBAC), wire)
    assert api.failure_text(answer) == (
        f'422 Invalid: [{cause}] RoleBinding.{GROUP} "b" is invalid: {said}'
    )


@pytest.mark.parametrize(
    ("wire", "cause", "said"),
    [
        *INVALID,
        pytest.param(
            binding(kind="Role"),
            "FieldValueNotSupported roleRef.kind",
            'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
            id="kind of the role",
        ),
        pytest.param(
            binding({"kind": "ServiceAccount", "name": "me"}),
            "FieldValueRequired subjects[0].namespace",
            "subjects[0].namespace: Required value",
            id="no namespace",
        ),
    ],
)
async def test_invalid_cluster_role_binding_is_rejected(
    api: Api, wire: JSON, cause: str, said: str
) -> None:
    answer = await api.post(f"/apis/{RBAC}/clusterrolebindings", wire)
    assert api.failure_text(answer) == (
        f'422 Invalid: [{cause}] ClusterRoleBinding.{GROUP} "b" is invalid: {said}'
    )


async def test_role_of_a_binding_is_immutable(api: Api) -> None:
    created = await api.create(api.path("rolebindings", group=RBAC), binding(USER))
    changed: dict[str, Any] = {**created, "roleRef": {**created["roleRef"], "name": "edit"}}
    answer = await api.put(api.path("rolebindings", "b", group=RBAC), changed)
    assert api.failure_text(answer) == (
        f'422 Invalid: [FieldValueInvalid roleRef] RoleBinding.{GROUP} "b" is invalid: roleRef: '
        "Invalid value: OBJECT: cannot change roleRef"
    )
    subjects = {**created, "subjects": [{**USER, "name": "bob"}]}
    assert (await api.put(api.path("rolebindings", "b", group=RBAC), subjects)).code == 200


async def test_groups_of_a_binding_have_defaults(api: Api) -> None:
    wire = binding(USER, {"kind": "ServiceAccount", "name": "me"}, apiGroup="")
    created = await api.create(api.path("rolebindings", group=RBAC), wire)
    assert created["roleRef"]["apiGroup"] == GROUP
    assert [subject.get("apiGroup") for subject in created["subjects"]] == [GROUP, None]


async def test_account_of_a_binding_is_by_default_one_of_its_namespace(api: Api) -> None:
    me = await token(api)
    wire = binding({"kind": "ServiceAccount", "name": "me"})
    await api.create(api.path("rolebindings", group=RBAC), wire)
    await until_granted(api, me, "GET", api.path("pods"))
