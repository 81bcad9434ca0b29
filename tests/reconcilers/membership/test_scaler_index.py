"""How many pending requests of a job are read at a time, and which."""

import datetime
from collections.abc import Sequence

import msgspec

from dlctl.api.meta import UID, ObjectMeta
from dlctl.api.objects.scalers import ScalerObject
from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.reconcilers.membership.scaler_index import MAX_BYTES, MAX_COUNT, first_pending
from tests.builders import NOW


def _request(number: int, spec: bytes = b"{}") -> ScalerObject:
    created = NOW + datetime.timedelta(seconds=number)
    name = f"in-{number}"
    metadata = ObjectMeta(name=name, uid=UID(name), creation_timestamp=created)
    return ScalerObject(metadata, spec=msgspec.Raw(spec))


def _first(requests: Sequence[ScalerObject], current: str = "") -> list[str]:
    found = first_pending([(SCALE_INS, one) for one in requests], current)
    return [one.metadata.name for _, one in found]


def test_few_requests_are_all_read_the_oldest_first() -> None:
    assert _first([_request(2), _request(0), _request(1)]) == ["in-0", "in-1", "in-2"]


def test_of_many_requests_the_oldest_are_read() -> None:
    many = [_request(number) for number in reversed(range(3 * MAX_COUNT))]
    assert _first(many) == [f"in-{number}" for number in range(MAX_COUNT)]


def test_request_of_the_current_operation_is_read_whatever_its_age() -> None:
    many = [_request(number) for number in range(3 * MAX_COUNT)]
    newest = many[-1].metadata.name
    assert _first(many, newest) == [newest, *(f"in-{n}" for n in range(MAX_COUNT - 1))]


def test_request_in_progress_is_read_whatever_its_age() -> None:
    many = [_request(number) for number in range(3 * MAX_COUNT)]
    scaling = msgspec.structs.replace(many[-1], status=msgspec.Raw(b'{"phase": "Scaling"}'))
    odd = msgspec.structs.replace(many[-2], status=msgspec.Raw(b'{"phase": []}'))
    assert _first([*many[:-2], odd, scaling])[:2] == [scaling.metadata.name, "in-0"]


def test_large_requests_are_read_one_at_a_time() -> None:
    large = b'"' + b"x" * MAX_BYTES + b'"'
    assert _first([_request(number, large) for number in range(3)]) == ["in-0"]
