from typing import Any

import pytest

from tests.local.apiserver.raw_client import (
    CONFIG_MAPS,
    PODS,
    WIDGETS,
    RawClient,
    config_map,
    pod,
    widget,
)


async def test_created_object_gets_identity_version_and_kind(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, config_map("a"))
    assert answer.code == 201
    assert answer.body["kind"] == "ConfigMap"
    assert answer.body["apiVersion"] == "v1"
    meta = answer.body["metadata"]
    assert meta["namespace"] == "default"
    assert len(meta["uid"]) == 36
    assert meta["creationTimestamp"].endswith("Z")
    assert int(meta["resourceVersion"]) > 0


async def test_get_returns_what_was_created(api: RawClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map("a"))
    assert (await api.get(f"{CONFIG_MAPS}/a")).body == created


async def test_missing_object_is_not_found_by_name(api: RawClient) -> None:
    answer = await api.get(f"{PODS}/x")
    assert answer.code == 404
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "x" not found',
        "reason": "NotFound",
        "details": {"name": "x", "kind": "pods"},
        "code": 404,
    }


async def test_taken_name_already_exists(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    answer = await api.post(CONFIG_MAPS, config_map("a"))
    assert answer.code == 409
    assert answer.body["reason"] == "AlreadyExists"
    assert answer.body["message"] == 'configmaps "a" already exists'


async def test_group_is_part_of_messages_of_custom_resources(widgets: RawClient) -> None:
    answer = await widgets.get(f"{WIDGETS}/x")
    assert answer.body["message"] == 'widgets.example.com "x" not found'
    assert answer.body["details"] == {"name": "x", "group": "example.com", "kind": "widgets"}


async def test_generated_names_differ_and_keep_their_prefix(api: RawClient) -> None:
    body = {"metadata": {"generateName": "job-"}}
    names = {(await api.create(CONFIG_MAPS, body))["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


async def test_object_without_a_name_is_invalid(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, {"metadata": {}})
    assert answer.code == 422
    assert answer.body["message"] == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


async def test_malformed_name_is_invalid_by_the_rule_of_its_kind(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, config_map("A_b"))
    assert answer.code == 422
    cause = answer.body["details"]["causes"][0]
    assert cause["field"] == "metadata.name"
    assert cause["reason"] == "FieldValueInvalid"
    assert cause["message"].startswith('Invalid value: "A_b": a lowercase RFC 1123 subdomain must')


async def test_version_on_create_is_rejected(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, config_map("a", resourceVersion="1"))
    assert answer.code == 500
    message = "resourceVersion should not be set on objects to be created"
    assert answer.body["message"] == message


async def test_version_on_create_is_returned_by_a_dry_run(api: RawClient) -> None:
    answer = await api.post(f"{CONFIG_MAPS}?dryRun=All", config_map("a", resourceVersion="7"))
    assert (answer.code, answer.body["metadata"]["resourceVersion"]) == (201, "7")
    assert (await api.get(f"{CONFIG_MAPS}/a")).code == 404


@pytest.mark.parametrize("version", ["a", "+1", str(1 << 64), "9" * 5000])
async def test_version_on_create_that_is_none_is_ignored(api: RawClient, version: str) -> None:
    answer = await api.post(CONFIG_MAPS, config_map("a", resourceVersion=version))
    assert (answer.code, answer.body["metadata"]["resourceVersion"] == version) == (201, False)


async def test_create_in_absent_namespace_is_not_found(api: RawClient) -> None:
    answer = await api.post("/api/v1/namespaces/none/configmaps", config_map("a"))
    assert answer.code == 404
    assert answer.body["message"] == 'namespaces "none" not found'


async def test_namespace_in_the_body_must_be_that_of_the_path(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, config_map("a", namespace="other"))
    assert answer.code == 400
    assert answer.body["message"] == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


async def test_update_with_an_old_version_is_a_conflict(api: RawClient) -> None:
    old = await api.create(CONFIG_MAPS, config_map("a"))
    await api.put(f"{CONFIG_MAPS}/a", old | {"data": {"k": "new"}})
    answer = await api.put(f"{CONFIG_MAPS}/a", old | {"data": {"k": "late"}})
    assert answer.code == 409
    assert answer.body["reason"] == "Conflict"
    assert answer.body["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_update_of_built_in_without_version_overwrites(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    answer = await api.put(f"{CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "2"}})
    assert answer.code == 200
    assert answer.body["data"] == {"k": "2"}


async def test_update_of_custom_object_needs_a_version(widgets: RawClient) -> None:
    await widgets.create(WIDGETS, widget("a"))
    answer = await widgets.put(f"{WIDGETS}/a", widget("a"))
    assert answer.code == 422
    assert answer.body["message"] == (
        'widgets.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )


async def test_update_of_absent_object_is_not_found(api: RawClient) -> None:
    answer = await api.put(f"{CONFIG_MAPS}/a", config_map("a"))
    assert answer.code == 404


async def test_update_of_absent_lease_creates_it(api: RawClient) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
    assert (await api.put(path, {"metadata": {"name": "a"}})).code == 201


async def test_update_by_another_uid_is_a_conflict(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    answer = await api.put(f"{CONFIG_MAPS}/a", config_map("a", uid="other"))
    assert answer.code == 409
    assert "Precondition failed: UID in precondition: other" in answer.body["message"]


async def test_name_in_the_body_must_be_that_of_the_path(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    answer = await api.put(f"{CONFIG_MAPS}/a", config_map("b"))
    assert answer.code == 400
    assert answer.body["message"] == (
        "the name of the object (b) does not match the name on the URL (a)"
    )


async def test_update_with_equal_content_is_no_write(api: RawClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map("a"))
    answer = await api.put(f"{CONFIG_MAPS}/a", created)
    assert answer.version == created["metadata"]["resourceVersion"]
    patched = await api.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
    assert patched.version == created["metadata"]["resourceVersion"]


async def test_identity_cannot_be_changed(api: RawClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map("a"))
    meta = {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "x"}
    patched = await api.patch(f"{CONFIG_MAPS}/a", {"metadata": meta, "data": {"k": "2"}})
    for name in ("uid", "creationTimestamp"):
        assert patched.body["metadata"][name] == created["metadata"][name]
    assert "generation" not in patched.body["metadata"]


async def test_status_is_dropped_on_create_and_kept_on_update(widgets: RawClient) -> None:
    created = await widgets.create(WIDGETS, widget("a", spec={"n": 1}, status={"phase": "X"}))
    assert "status" not in created
    await widgets.patch(f"{WIDGETS}/a/status", {"status": {"phase": "Running"}})
    patched = await widgets.patch(f"{WIDGETS}/a", {"status": {"phase": "Y"}, "spec": {"n": 2}})
    assert patched.body["status"] == {"phase": "Running"}
    assert patched.body["spec"] == {"n": 2}


async def test_status_subresource_changes_nothing_else(widgets: RawClient) -> None:
    await widgets.create(WIDGETS, widget("a", spec={"n": 1}))
    body = {"metadata": {"labels": {"x": "y"}}, "spec": {"n": 2}, "status": {"phase": "Running"}}
    patched = await widgets.patch(f"{WIDGETS}/a/status", body)
    assert patched.body["spec"] == {"n": 1}
    assert "labels" not in patched.body["metadata"]
    assert patched.body["status"] == {"phase": "Running"}


async def test_generation_counts_changes_of_the_spec_only(widgets: RawClient) -> None:
    async def generation(path: str, body: dict[str, Any]) -> int:
        answer = await widgets.patch(path, body)
        return int(answer.body["metadata"]["generation"])

    created = await widgets.create(WIDGETS, widget("a", spec={"n": 1}))
    assert created["metadata"]["generation"] == 1
    path = f"{WIDGETS}/a"
    assert await generation(path, {"metadata": {"labels": {"x": "y"}}}) == 1
    assert await generation(f"{path}/status", {"status": {"phase": "Running"}}) == 1
    assert await generation(path, {"spec": {"n": 2}}) == 2


async def test_dry_run_returns_the_object_and_stores_nothing(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, config_map("a"), dryRun="All")
    assert answer.code == 201
    assert "resourceVersion" not in answer.body["metadata"]
    assert (await api.get(f"{CONFIG_MAPS}/a")).code == 404

    await api.create(CONFIG_MAPS, config_map("a"))
    patched = await api.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "2"}}, dryRun="All")
    assert patched.body["data"] == {"k": "2"}
    assert (await api.get(f"{CONFIG_MAPS}/a")).body["data"] == {"k": "v"}


async def test_dry_run_of_another_kind_is_invalid(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, config_map("a"), dryRun="Some")
    assert answer.code == 422
    assert "CreateOptions.meta.k8s.io" in answer.body["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"{", "json parse error", id="no json"),
        pytest.param({"apiVersion": "v2"}, 'no kind "ConfigMap" is registered', id="version"),
        pytest.param({"kind": "Pod"}, "Pod in version", id="kind"),
        pytest.param({"metadata": {"labels": {"a": 1}}}, "cannot be handled", id="label type"),
        pytest.param({"metadata": []}, "cannot be handled", id="metadata type"),
        pytest.param([], "unrecognized", id="list"),
    ],
)
async def test_body_of_another_kind_is_a_bad_request(
    api: RawClient, body: object, message: str
) -> None:
    answer = await api.post(CONFIG_MAPS, body)
    assert answer.code == 400
    assert answer.body["reason"] == "BadRequest"
    assert message in answer.body["message"]


async def test_body_in_an_unknown_format_is_an_unsupported_media_type(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, b"a,b", type_="text/csv")
    assert answer.code == 415
    assert answer.body["reason"] == "UnsupportedMediaType"


async def test_yaml_body_is_read(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, b"metadata:\n  name: a\n", type_="application/yaml")
    assert answer.code == 201


async def test_yaml_body_is_read_as_kubectl_reads_it(api: RawClient) -> None:
    body = b"metadata:\n  name: b\ndata: {a: 12:30:00, y: '1'}\n"
    answer = await api.post(CONFIG_MAPS, body, type_="application/yaml")
    assert answer.body["data"] == {"a": "12:30:00", "true": "1"}


async def test_two_controllers_are_invalid(api: RawClient) -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1", "controller": True}
    answer = await api.post(CONFIG_MAPS, config_map("a", ownerReferences=[reference, reference]))
    assert answer.code == 422
    assert "Only one reference can have Controller set to true" in answer.body["message"]


async def test_new_pod_is_pending_whatever_is_sent(api: RawClient) -> None:
    created = await api.create(PODS, pod("a") | {"status": {"phase": "Running"}})
    assert created["status"]["phase"] == "Pending"


async def test_unknown_fields_are_dropped_or_rejected_by_field_validation(api: RawClient) -> None:
    body = config_map("a") | {"typo": 1}
    strict = await api.post(CONFIG_MAPS, body, fieldValidation="Strict")
    assert strict.code == 400
    assert strict.body["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        'strict decoding error: unknown field "typo"'
    )
    assert "typo" not in await api.create(CONFIG_MAPS, body)

    patched = await api.patch(f"{CONFIG_MAPS}/a", {"typo": 1}, fieldValidation="Strict")
    assert patched.code == 422
    assert patched.body["message"].startswith(' "" is invalid: patch: Invalid value: ')
    assert patched.body["message"].endswith('strict decoding error: unknown field "typo"')


async def test_unserved_format_is_rejected_before_the_write(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, config_map("a"), accept="text/csv")
    assert answer.code == 406
    assert (await api.get(f"{CONFIG_MAPS}/a")).code == 404
