"""Large jobs are decoded and planned in a thread."""

import threading

from dlctl.reconcilers.large_jobs import LARGE_JOB, to_thread_if_large


async def test_large_jobs_are_decided_beside_the_loop() -> None:
    here = threading.current_thread()
    assert await to_thread_if_large(LARGE_JOB - 1, threading.current_thread) is here
    assert await to_thread_if_large(LARGE_JOB, threading.current_thread) is not here
