"""The CRDs: small enough for kubectl apply, structural, and consistent with the readers."""

import json
import re
from collections.abc import Iterator

import pytest

from dlctl.api.json_types import JSON
from dlctl.dialects.kind import Kind
from dlctl.dialects.kind_crds import job_crd, kind_crds
from dlctl.dialects.replica_lists.replica_list import ReplicaList
from tests.builders import KINDS, kind_of

# kubectl apply stores the whole definition as JSON in an annotation; all of an object's annotations
# may have 256 KiB together. What users add, such as labels, needs some of it.
MAX_BYTES = 256 * 1024 - 400
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Structural schemas do not define fields inside junctors.
FORBIDDEN = {
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "definitions",
    "uniqueItems",
    "patternProperties",
}

of_each_kind = pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.resource.group_resource) for kind in KINDS]
)


def schemas(schema: JSON, path: str = "") -> Iterator[tuple[str, JSON]]:
    """Yield a schema and all within it, with their paths."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from schemas(schema["additionalProperties"], f"{path}.*")


def versions(kind: Kind) -> list[JSON]:
    found: list[JSON] = job_crd(kind)["spec"]["versions"]
    return found


def spec_schema(kind: Kind) -> JSON:
    version = next(v for v in versions(kind) if v["name"] == kind.resource.version)
    found: JSON = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


@of_each_kind
def test_crd_fits_the_annotation_of_kubectl_apply(kind: Kind) -> None:
    for definition in kind_crds(kind):
        metadata = {"annotations": {}, **definition["metadata"]}
        text = json.dumps({**definition, "metadata": metadata}, separators=(",", ":")) + "\n"
        # As Go escapes them.
        escaped = re.sub("[<>&]", r"\\u0000", text)
        assert len(LAST_APPLIED) + len(escaped) < MAX_BYTES


@of_each_kind
def test_crd_is_named_after_plural_and_group(kind: Kind) -> None:
    definition = job_crd(kind)
    names, group = definition["spec"]["names"], definition["spec"]["group"]
    assert definition["metadata"]["name"] == f"{names['plural']}.{group}"
    assert names["kind"] == kind.resource.kind


@of_each_kind
def test_exactly_one_version_is_stored_and_all_have_a_status(kind: Kind) -> None:
    found = versions(kind)
    assert [version["storage"] for version in found].count(True) == 1
    assert all(version["subresources"]["status"] == {} for version in found)


@of_each_kind
def test_scale_subresource_has_the_path_of_the_workers(kind: Kind) -> None:
    field = {
        "PyTorchJob": "pytorchReplicaSpecs.Worker",
        "PaddleJob": "paddleReplicaSpecs.Worker",
        "JAXJob": "jaxReplicaSpecs.Worker",
        "TrainingJob": "etReplicaSpecs.worker",
    }.get(kind.resource.kind)
    # Those of a list are not at a path.
    mapped = [v for v in versions(kind) if not isinstance(kind.dialects[v["name"]], ReplicaList)]
    scales = [version["subresources"].get("scale") for version in mapped]
    assert scales == [
        {
            "specReplicasPath": f".spec.{field}.replicas",
            "statusReplicasPath": ".status.replicaStatuses.Worker.active",
            "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
        }
        if field
        else None
    ] * len(scales)


@of_each_kind
def test_rules_at_the_root_exempt_stored_objects(kind: Kind) -> None:
    for version in versions(kind):
        for rule in version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]:
            assert rule["optionalOldSelf"]
            assert "oldSelf" in rule["rule"]


def test_versions_of_one_form_are_described_once() -> None:
    stored, *others = versions(kind_of("kubeflow.org/v1", "TFJob"))
    assert [version["name"] for version in others] == ["v1alpha1", "v1alpha2", "v1beta1", "v1beta2"]
    for version in others[1:]:
        mine, its = version["schema"]["openAPIV3Schema"], stored["schema"]["openAPIV3Schema"]
        assert "description" not in mine["properties"]["spec"]
        assert (
            mine["properties"]["spec"].keys() | {"description"} == its["properties"]["spec"].keys()
        )


@of_each_kind
def test_schema_is_structural(kind: Kind) -> None:
    for version in versions(kind):
        for path, schema in schemas(version["schema"]["openAPIV3Schema"]):
            untyped = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
            assert schema.get("type") or any(schema.get(name) for name in untyped), path
            assert not FORBIDDEN & schema.keys(), path


@of_each_kind
def test_required_fields_exist_and_patterns_compile(kind: Kind) -> None:
    for version in versions(kind):
        for path, schema in schemas(version["schema"]["openAPIV3Schema"]):
            assert set(schema.get("required", ())) <= set(schema.get("properties", ())), path
            re.compile(schema.get("pattern", ""))


@of_each_kind
def test_columns_show_fields_of_the_status_and_the_age(kind: Kind) -> None:
    for version in versions(kind):
        columns = {c["name"]: c["jsonPath"] for c in version["additionalPrinterColumns"]}
        old = version["name"] == "v1alpha1" or kind.resource.group != "kubeflow.org"
        wanted = ["Phase", "State", "Age", "Reason"] if old else ["State", "Age"]
        special = {
            "mpijob": ["Age", "State", "Version"],
            "trainingjob": ["Phase", "Age"],
            "xgboostjob": ["State", "Age"],
        }
        wide = ["Waiting"] if version["storage"] else []
        assert list(columns) == special.get(kind.singular, wanted) + wide
        assert columns["Age"] == ".metadata.creationTimestamp"


def test_name_pattern_is_that_of_the_reader() -> None:
    rules = versions(kind_of())[0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    pattern = re.search(r"matches\('(.*)'\)", rules[1]["rule"])
    assert pattern is not None
    assert re.match(pattern[1], "linear-2")
    assert not re.match(pattern[1], "my.job")


@pytest.mark.parametrize("value", ["", "dist", "LOCAL"])
def test_mode_is_accepted_in_any_case(value: str) -> None:
    pattern = spec_schema(kind_of())["properties"]["jobMode"]["pattern"]
    assert re.search(pattern, value)
    assert not re.search(pattern, "MXTrain")


def test_entries_of_the_bare_list_require_what_the_reader_requires() -> None:
    schema = spec_schema(kind_of("mpba.fbk.eu/v1"))
    assert schema["type"] == "array"
    assert schema["items"]["required"] == ["replicas", "replicaType", "template"]


def test_rules_name_the_replica_types_and_the_singletons() -> None:
    rules = spec_schema(kind_of())["properties"]["replicaSpecs"]["items"][
        "x-kubernetes-validations"
    ]
    assert [rule["message"] for rule in rules] == [
        "mxReplicaType must be one of SCHEDULER, SERVER, WORKER",
        "there must be exactly 1 SCHEDULER",
    ]
