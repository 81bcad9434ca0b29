"""Specs of lists and objects only, which would take too long to examine, are not examined."""

import msgspec
import pytest

from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.undecoded_object import TOO_DEEP
from dlctl.kube.decoding import decode


@pytest.mark.parametrize(
    ("count", "is_read"),
    [pytest.param(1500, True, id="many"), pytest.param(2000, False, id="too many")],
)
def test_spec_with_more_lists_than_are_examined_counts_as_too_deep(
    count: int, is_read: bool
) -> None:
    spec = b"[" + b",".join([b"[" * 60 + b"]" * 60] * count) + b"]"
    job = decode(b'{"metadata":{"name":"a"},"spec":' + spec + b"}", JobObject)
    assert (job.spec is not TOO_DEEP) is is_read
    assert job.readable_spec == msgspec.Raw(spec if is_read else b"null")
