"""The type table of pod templates, compared with the models of the official client."""

from collections.abc import Iterator

from dlctl.api.core_types.type_tables import Field, pod_types
from tests.support.core_types import field_type, fields


def spelling(field: Field) -> str:
    return "".join(field.shape) + field.type


def reached(name: str, seen: set[str]) -> Iterator[str]:
    if name in pod_types() and name not in seen:
        seen.add(name)
        yield name
        for field in pod_types()[name].fields.values():
            yield from reached(field.type, seen)


def model_of(name: str) -> str:
    return "CoreV1ResourceClaim" if name == "ResourceClaim" else f"V1{name}"


def test_types_of_a_pod_template_are_those_of_core_v1() -> None:
    for name in reached("PodTemplateSpec", set()):
        model = model_of(name)
        ours = {field.name: spelling(field) for field in pod_types()[name].fields.values()}
        theirs = {each: field_type(model, each) for each in fields(model)}
        named = {
            each: type_.replace("CoreV1ResourceClaim", "V1ResourceClaim").replace("V1", "")
            for each, type_ in theirs.items()
        }
        assert ours == named, name
