"""Stored statuses are read, or count as empty."""

import msgspec
import pytest

from dlctl.api.objects.scalers import ScalerStatus
from dlctl.api.status.job_status import JobPhase
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.dialects.kind import Kind
from dlctl.dialects.status import status_codec
from tests.builders import KINDS, job_object, manifest


@pytest.mark.parametrize("text", ["1e309", '{"startTime":1e999999}', "[" * 5000 + "]" * 5000, "-"])
def test_undecodable_status_counts_as_empty(text: str) -> None:
    raw = msgspec.Raw(text.encode())
    assert status_codec.decode(raw) == {}
    assert scalers.read_status(raw, SCALE_INS) == ScalerStatus()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.group_resource)
def test_no_kind_fails_on_an_undecodable_status(kind: Kind) -> None:
    wire = manifest(kind.resource.api_version, kind.resource.kind, {})
    obj = msgspec.structs.replace(job_object(wire), status=msgspec.Raw(b'{"conditions":1e309}'))
    decoded = kind.decode(obj)
    assert decoded.dialect.read_status(decoded).phase is JobPhase.NEW


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "0999-12-31T23:59:59Z"])
def test_early_time_is_written_as_it_was_read(text: str) -> None:
    assert status_codec.write_time(status_codec.read_time(text)) == text


@pytest.mark.parametrize("value", [-5, 2**31, 10**30, True, 1.5, "3", None])
def test_impossible_count_counts_as_absent(value: object) -> None:
    assert status_codec.count({"jobRestarts": value}, "jobRestarts") == 0


def test_count_is_read_as_written() -> None:
    assert status_codec.count({"jobRestarts": 2**31 - 1}, "jobRestarts") == 2**31 - 1


def test_first_condition_of_each_type_that_is_true_counts() -> None:
    running = {"type": "Running", "status": "True", "reason": "first"}
    false = {**running, "status": "False", "reason": "false"}
    wire = {"conditions": [{}, false, running, {"type": ""}, {**running, "reason": "second"}, 3]}
    (found,) = status_codec.read_conditions(wire)
    assert (found.type, found.status, found.reason) == ("Running", True, "first")
