"""Invalid CRDs."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import CRDS, Api
from tests.contract.definitions import definition, open_version, version_of
from tests.contract.version_marks import FIELDS_BELOW_ITEMS


@pytest.mark.parametrize(
    ("crd", "said"),
    [
        pytest.param(
            definition("things", group="bad.dlctl.dev") | {"metadata": {"name": "x"}},
            (
                "422 Invalid: [FieldValueInvalid metadata.name] "
                'CustomResourceDefinition.apiextensions.k8s.io "x" is invalid: '
                'metadata.name: Invalid value: "x": must be '
                'spec.names.plural+"."+spec.group'
            ),
            id="name",
        ),
        pytest.param(
            definition("things", group="bad.dlctl.dev", versions=[]),
            (
                "422 Invalid: [FieldValueInvalid spec.versions] [FieldValueInvalid "
                "status.storedVersions] CustomResourceDefinition.apiextensions.k8s.io "
                '"things.bad.dlctl.dev" is invalid: spec.versions: Invalid value: []: '
                "must have exactly one version marked as storage version, "
                "status.storedVersions: Invalid value: null: must have at least one "
                "stored version"
            ),
            id="no version",
        ),
        pytest.param(
            definition(
                "things", group="bad.dlctl.dev", versions=[open_version("v1"), open_version("v2")]
            ),
            (
                "422 Invalid: [FieldValueInvalid spec.versions] [FieldValueInvalid "
                "status.storedVersions] CustomResourceDefinition.apiextensions.k8s.io "
                '"things.bad.dlctl.dev" is invalid: spec.versions: Invalid value: OBJECT:'
                " must have exactly one version marked as storage version, "
                'status.storedVersions: Invalid value: ["v1"]: must have the storage '
                "version v2"
            ),
            id="two stored",
        ),
        pytest.param(
            definition(
                "things", group="bad.dlctl.dev", versions=[open_version("v1", storage=False)]
            ),
            (
                "422 Invalid: [FieldValueInvalid spec.versions] [FieldValueInvalid "
                "status.storedVersions] CustomResourceDefinition.apiextensions.k8s.io "
                '"things.bad.dlctl.dev" is invalid: spec.versions: Invalid value: OBJECT:'
                " must have exactly one version marked as storage version, "
                "status.storedVersions: Invalid value: null: must have at least one "
                "stored version"
            ),
            id="none stored",
        ),
        pytest.param(
            definition(
                "things",
                group="bad.dlctl.dev",
                versions=[open_version("v1"), open_version("v1", storage=False)],
            ),
            (
                "422 Invalid: [FieldValueInvalid spec.versions] "
                'CustomResourceDefinition.apiextensions.k8s.io "things.bad.dlctl.dev" is '
                "invalid: spec.versions: Invalid value: OBJECT: must contain unique "
                "version names"
            ),
            id="same version twice",
        ),
        pytest.param(
            definition(
                "things",
                group="bad.dlctl.dev",
                versions=[{"name": "v1", "served": True, "storage": True}],
            ),
            (
                "422 Invalid: [FieldValueRequired "
                "spec.versions[0].schema.openAPIV3Schema] "
                'CustomResourceDefinition.apiextensions.k8s.io "things.bad.dlctl.dev" is '
                "invalid: spec.versions[0].schema.openAPIV3Schema: Required value"
            ),
            id="no schema",
        ),
        pytest.param(
            definition(
                "things",
                group="bad.dlctl.dev",
                versions=[version_of({"type": "object", "properties": {"a": {}}})],
            ),
            (
                "422 Invalid: [FieldValueRequired "
                "spec.validation.openAPIV3Schema.properties[a].type] "
                'CustomResourceDefinition.apiextensions.k8s.io "things.bad.dlctl.dev" is '
                "invalid: spec.validation.openAPIV3Schema.properties[a].type: Required "
                "value: must not be empty for specified object fields"
            ),
            id="property without a type",
        ),
        pytest.param(
            definition(
                "things",
                group="bad.dlctl.dev",
                versions=[version_of({"type": "object", "properties": {"a": {"type": "array"}}})],
            ),
            (
                "422 Invalid: [FieldValueRequired "
                "spec.validation.openAPIV3Schema.properties[a].items] "
                'CustomResourceDefinition.apiextensions.k8s.io "things.bad.dlctl.dev" is '
                "invalid: spec.validation.openAPIV3Schema.properties[a].items: Required "
                "value: must be specified"
            ),
            id="list without items",
        ),
        pytest.param(
            definition(
                "things",
                group="bad.dlctl.dev",
                versions=[
                    version_of(
                        {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}
                    )
                ],
            ),
            (
                "422 Invalid: [FieldValueTypeInvalid "
                "spec.validation.openAPIV3Schema.properties[a].default] "
                'CustomResourceDefinition.apiextensions.k8s.io "things.bad.dlctl.dev" is '
                "invalid: spec.validation.openAPIV3Schema.properties[a].default: Invalid "
                'value: "string":  in body must be of type integer: "string"'
            ),
            id="default of another type",
        ),
        pytest.param(
            definition(
                "things",
                group="bad.dlctl.dev",
                versions=[
                    version_of(
                        {"type": "object", "x-kubernetes-validations": [{"rule": "self.x =="}]}
                    )
                ],
            ),
            (
                "422 Invalid: [FieldValueInvalid "
                "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule] "
                'CustomResourceDefinition.apiextensions.k8s.io "things.bad.dlctl.dev" is '
                "invalid: "
                "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule: "
                "Invalid value: OBJECT: compilation failed: ERROR: <input>:1:10: Syntax "
                "error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!',"
                " 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
                "IDENTIFIER}"
            ),
            id="rule that is no CEL",
        ),
        pytest.param(
            definition(
                "things",
                group="bad.dlctl.dev",
                versions=[
                    version_of(
                        {
                            "type": "object",
                            "properties": {"a": {"type": "string"}},
                            "additionalProperties": {"type": "string"},
                        }
                    )
                ],
            ),
            (
                "422 Invalid: [FieldValueForbidden "
                "spec.validation.openAPIV3Schema.additionalProperties] "
                'CustomResourceDefinition.apiextensions.k8s.io "things.bad.dlctl.dev" is '
                "invalid: spec.validation.openAPIV3Schema.additionalProperties: "
                "Forbidden: additionalProperties and properties are mutual exclusive, "
                "spec.validation.openAPIV3Schema.additionalProperties: Forbidden: must "
                "not be used at the root"
            ),
            id="properties beside preserved",
        ),
    ],
)
async def test_malformed_crd_is_invalid(api: Api, crd: JSON, said: str) -> None:
    answer = await api.post(CRDS, crd)
    assert api.failure_text(answer) == said


MISTYPED = (
    '400 BadRequest: CustomResourceDefinition in version "v1" cannot be handled as a '
    "CustomResourceDefinition: "
)
ITEMS = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.items"


@FIELDS_BELOW_ITEMS
@pytest.mark.parametrize(
    ("items", "value", "field"),
    [
        pytest.param({"type": 5}, "number", "type of type string", id="type"),
        pytest.param(
            {"type": "object", "properties": []},
            "array",
            "properties of type map[string]v1.JSONSchemaProps",
            id="properties",
        ),
        pytest.param(
            {"type": "object", "required": 3}, "number", "required of type []string", id="required"
        ),
        pytest.param(
            {"type": "string", "enum": "x"}, "string", "enum of type []v1.JSON", id="enum"
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-validations": {}},
            "object",
            "x-kubernetes-validations of type v1.ValidationRules",
            id="rules",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "integer", "maximum": "x"}},
            "string",
            "items.maximum of type float64",
            id="items of items",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"nullable": 1}},
            "number",
            "additionalProperties.nullable of type bool",
            id="additional properties",
        ),
    ],
)
async def test_wrong_type_below_items_is_rejected(
    api: Api, items: Any, value: str, field: str
) -> None:
    said = f"{MISTYPED}json: cannot unmarshal {value} into Go struct field {ITEMS}.{field}"
    assert await rejection_of_items(api, items) == said


@pytest.mark.parametrize(
    ("items", "said"),
    [
        pytest.param(
            {"type": "object", "additionalProperties": 5},
            f"{MISTYPED}boolean or JSON schema expected",
            id="additional properties",
        ),
        pytest.param(
            [5],
            f"{MISTYPED}json: cannot unmarshal number into Go struct field {ITEMS} of type "
            "v1.JSONSchemaProps",
            id="list",
        ),
        pytest.param(
            "x",
            "422 Invalid: [FieldValueRequired spec.validation.openAPIV3Schema.properties[a].items] "
            'CustomResourceDefinition.apiextensions.k8s.io "things.bad.dlctl.dev" is invalid: '
            "spec.validation.openAPIV3Schema.properties[a].items: Required value: must be "
            "specified",
            id="text",
        ),
    ],
)
async def test_items_that_are_no_schema_are_rejected(api: Api, items: Any, said: str) -> None:
    assert await rejection_of_items(api, items) == said


async def rejection_of_items(api: Api, items: Any) -> str:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": items}}}
    crd = definition("things", group="bad.dlctl.dev", versions=[version_of(schema)])
    return api.failure_text(await api.post(CRDS, crd))
