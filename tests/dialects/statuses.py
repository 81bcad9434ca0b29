"""Statuses of jobs, as a strategy of hypothesis."""

import datetime

from hypothesis import strategies as st

from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import (
    Failure,
    JobPhase,
    JobState,
    JobStatus,
    ReplicaStatus,
    RestartRecord,
)

TEXT = st.text(max_size=8)
COUNT = st.integers(min_value=0, max_value=9_999)
TIMES = st.datetimes(
    min_value=datetime.datetime(1970, 1, 1),
    max_value=datetime.datetime(2100, 1, 1),
    timezones=st.just(datetime.UTC),
).map(lambda time: time.replace(microsecond=0))
# A type may be any text.
REPLICA_NAMES = st.builds(
    "{}-{}".format,
    st.sampled_from(["worker", "ps", "launcher", "a-b", "worker-1", "worker-\n"]),
    COUNT | st.just(10**12),
)
CODES = st.none() | st.integers(min_value=-1, max_value=255)
CONDITIONS = st.lists(
    st.builds(Condition, TEXT.filter(bool), st.booleans(), TEXT, TEXT, TIMES, TIMES),
    max_size=3,
    unique_by=lambda condition: condition.type,
).map(tuple)
STATUSES = st.builds(
    JobStatus,
    phase=st.sampled_from(JobPhase),
    state=st.sampled_from(JobState),
    reason=TEXT,
    replica_statuses=st.lists(
        st.builds(
            ReplicaStatus,
            type=st.sampled_from(["scheduler", "server", "worker"]),
            state=st.sampled_from(JobState),
            count_by_state=st.dictionaries(st.sampled_from(JobState), COUNT.filter(bool)),
            completed_indexes=st.frozensets(COUNT, max_size=5),
        ),
        max_size=3,
    ).map(tuple),
    conditions=CONDITIONS,
    start_time=st.none() | TIMES,
    completion_time=st.none() | TIMES,
    restarts=st.dictionaries(
        REPLICA_NAMES,
        st.builds(RestartRecord, COUNT, COUNT, TEXT, TEXT, TIMES, CODES),
        max_size=3,
    ),
    failure=st.none() | st.builds(Failure, TEXT, TEXT, TEXT, TEXT, TIMES, CODES),
    observed_generation=COUNT,
    scaled_down=st.dictionaries(TEXT, st.frozensets(COUNT, min_size=1, max_size=5), max_size=3),
)
