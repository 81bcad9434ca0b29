"""The config maps, secrets and tokens that pods name."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.objects import pod


def with_reference(**fields: object) -> JSON:
    return pod(containers=[{"name": "a", "image": "x", **fields}])


def with_volume(**source: object) -> JSON:
    return pod(volumes=[{"name": "v", **source}])


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        pytest.param(
            with_reference(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}]),
            ["Invalid spec.containers[0].env[0].valueFrom.secretKeyRef.name"],
            id="no name of a secret",
        ),
        pytest.param(
            with_reference(
                env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "", "key": "a b"}}}]
            ),
            [
                "Invalid spec.containers[0].env[0].valueFrom.configMapKeyRef.key",
                "Invalid spec.containers[0].env[0].valueFrom.configMapKeyRef.name",
            ],
            id="empty name of a config map, and a malformed key",
        ),
        pytest.param(
            with_reference(envFrom=[{"configMapRef": {"name": "A_"}, "secretRef": {}}]),
            [
                "Invalid spec.containers[0].envFrom",
                "Invalid spec.containers[0].envFrom[0].configMapRef.name",
                "Required spec.containers[0].envFrom[0].secretRef.name",
            ],
            id="two sources of variables",
        ),
        pytest.param(
            with_reference(envFrom=[{}]), ["Invalid spec.containers[0].envFrom"], id="no source"
        ),
        pytest.param(
            with_volume(configMap={"name": "m", "items": [{"key": "", "path": ""}]}),
            [
                "Required spec.volumes[0].configMap.items[0].key",
                "Required spec.volumes[0].configMap.items[0].path",
            ],
            id="empty key of a volume",
        ),
        pytest.param(
            with_volume(
                projected={
                    "sources": [
                        {"secret": {"name": ""}},
                        {"configMap": {"items": [{"key": "k", "path": ""}]}},
                        {"serviceAccountToken": {"path": ""}},
                    ]
                }
            ),
            [
                "Required spec.volumes[0].projected.path",
                "Required spec.volumes[0].projected.sources[0].secret.name",
                "Required spec.volumes[0].projected.sources[1].configMap.items[0].path",
                "Required spec.volumes[0].projected.sources[1].configMap.name",
            ],
            id="projected volume",
        ),
    ],
)
async def test_references_need_names_and_keys(api: Api, body: JSON, fields: list[str]) -> None:
    answer = await api.post(api.path("pods"), body)
    causes = answer.body["details"]["causes"]
    found = (f"{c['reason'].removeprefix('FieldValue')} {c['field']}" for c in causes)
    assert (answer.code, sorted(found)) == (422, fields)


async def test_source_of_variables_may_end_with_a_dash(api: Api) -> None:
    body = with_reference(envFrom=[{"secretRef": {"name": "a-", "optional": True}}])
    assert (await api.post(api.path("pods"), body)).code == 201
