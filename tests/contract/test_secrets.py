"""Content of Secrets and ConfigMaps that is not base64."""

import pytest

from tests.contract.api import Api


@pytest.mark.parametrize(
    ("value", "at"),
    [
        pytest.param("pass-word", 4, id="character"),
        pytest.param("hello", 4, id="length"),
        pytest.param("YQ=Y", 2, id="padding"),
        pytest.param("=", 0, id="only padding"),
        pytest.param("YQ==YQ==", 4, id="after the end"),
        pytest.param("x\u00e9", 1, id="no ASCII"),
    ],
)
@pytest.mark.parametrize(
    ("plural", "kind", "field"),
    [("secrets", "Secret", "data"), ("configmaps", "ConfigMap", "binaryData")],
)
async def test_value_that_is_not_base64_is_rejected(
    api: Api, plural: str, kind: str, field: str, value: str, at: int
) -> None:
    answer = await api.post(api.path(plural), {"metadata": {"name": "a"}, field: {"k": value}})
    assert api.failure_text(answer) == (
        f'400 BadRequest: {kind} in version "v1" cannot be handled as a {kind}: illegal base64 '
        f"data at input byte {at}"
    )


async def test_base64_may_have_several_lines(api: Api) -> None:
    wire = {"metadata": {"name": "a"}, "data": {"k": "aGVs\nbG8=\n"}}
    assert (await api.create(api.path("secrets"), wire))["data"] == {"k": "aGVsbG8="}
