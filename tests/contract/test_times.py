"""Malformed times in objects."""

import pytest

from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map

LAYOUT = '"2006-01-02T15:04:05Z07:00"'


@pytest.mark.parametrize(
    ("time", "problem"),
    [
        pytest.param("", f'"" as {LAYOUT}: cannot parse "" as "2006"', id="empty"),
        pytest.param("2020", f'"2020" as {LAYOUT}: cannot parse "" as "-"', id="year"),
        pytest.param("1" * 9, f'"111111111" as {LAYOUT}: cannot parse "11111" as "-"', id="number"),
        pytest.param(
            "2020-13-01T00:00:00Z", '"2020-13-01T00:00:00Z": month out of range', id="month"
        ),
        pytest.param("2021-02-29T00:00:00Z", '"2021-02-29T00:00:00Z": day out of range', id="day"),
        pytest.param(
            "2020-01-01T24:00:00Z", '"2020-01-01T24:00:00Z": hour out of range', id="hour"
        ),
        pytest.param(
            "2020-01-01T00:00:00Zx", '"2020-01-01T00:00:00Zx": extra text: "x"', id="more"
        ),
    ],
)
async def test_malformed_time_is_a_bad_request(gadget_api: Api, time: str, problem: str) -> None:
    api = gadget_api
    answer = await api.post(api.path("configmaps"), config_map(creationTimestamp=time))
    assert api.failure_text(answer) == (
        '400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: parsing time '
        f"{problem}"
    )
    custom = gadget(meta={"creationTimestamp": time})
    answer = await api.post(api.path("gadgets", group=V1), custom)
    assert api.failure_text(answer) == (
        '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: parsing time '
        f"{problem}"
    )
