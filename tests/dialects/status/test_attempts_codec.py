import datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.status.verdict import (
    MAX_ATTEMPTS,
    MAX_COLLATERAL,
    Attempt,
    Cause,
    Confidence,
    Verdict,
)
from dlctl.dialects.status import attempts_codec

_NAMES = st.text(alphabet="abc-019", max_size=8)
_TIMES = st.datetimes(timezones=st.just(datetime.UTC), min_value=datetime.datetime(1970, 1, 1)).map(
    lambda time: time.replace(microsecond=0)
)
_VERDICTS = st.builds(
    Verdict,
    cause=st.sampled_from(Cause),
    confidence=st.sampled_from(Confidence),
    message=st.text(max_size=20),
    time=_TIMES,
    replica=_NAMES,
    pod=_NAMES,
    node=_NAMES,
    rank=st.none() | st.integers(0, 10_000),
    exit_code=st.none() | st.integers(-64, 255),
    is_consequence=st.booleans(),
    is_planned=st.booleans(),
    collateral=st.lists(_NAMES, max_size=MAX_COLLATERAL).map(tuple),
    collateral_count=st.integers(0, 1000),
)
_ATTEMPTS = st.builds(
    Attempt,
    number=st.integers(0, 1000),
    start_time=_TIMES,
    end_time=st.none() | _TIMES,
    verdict=st.none() | _VERDICTS,
    world_size=st.integers(0, 1000),
    lost_s=st.none() | st.integers(0, 10**6),
    drained_nodes=st.dictionaries(_NAMES, _TIMES, max_size=5),
)


@given(st.lists(_ATTEMPTS, max_size=MAX_ATTEMPTS + 2).map(tuple))
def test_attempts_are_read_as_written_and_only_the_newest_are_kept(
    attempts: tuple[Attempt, ...],
) -> None:
    wire = msgspec.json.decode(msgspec.json.encode({"attempts": attempts_codec.write(attempts)}))
    assert attempts_codec.read(wire, "attempts") == attempts[-MAX_ATTEMPTS:]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["attempts", "number", "cause", "startTime", "collateral"]), inner
            )
        ),
    )
)
def test_reading_malformed_attempts_never_fails(value: object) -> None:
    attempts_codec.write(attempts_codec.read({"attempts": value}, "attempts"))
