"""The limit of restarts of ``dlctl run``, whatever the policy of a replica. Pure."""

import argparse
import re
from typing import Final

from dlctl.api.exit_codes import describe_exit_code
from dlctl.api.status.job_status import JobPhase
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ReplicaProgress

DEFAULT: Final = 3
_UNLIMITED: Final = "unlimited"
_CRASHED: Final = "CrashLoopBackOff"
_LOST: Final = "Lost"
# In the words of the node's scheduler; GPUs that are in use may become free.
_NEVER_FITS: Final = re.compile(
    "Insufficient .* and this machine has|didn't match Pod's node affinity/selector"
)


def max_restarts(text: str) -> int | None:
    """Return the limit, None for none; the type of an argument."""
    if text == _UNLIMITED:
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: write a number or {_UNLIMITED}")
    return int(text)


def replica_beyond(job: JobProgress, limit: int | None) -> ReplicaProgress | None:
    """Return a replica that has been restarted more often, or waits for a restart too many.

    Init containers may exit until another replica has done its part: their restarts count only
    while no other replica runs, and no longer once the program has started.
    Restarts and waiting do not help one that cannot start: it is found at once.
    """
    # The outcome of a job that cleans up is known.
    if limit is None or job.is_finished or job.phase is JobPhase.CLEAN_UP:
        return None
    return next((r for r in job.replicas if _needed(job, r) > limit or cannot_start(r)), None)


def cannot_start(replica: ReplicaProgress) -> bool:
    """Return whether waiting is in vain: for another try of the program, or another node."""
    if replica.is_settled:
        return False
    if _NEVER_FITS.search(replica.waiting_message):
        return True
    return bool(replica.exits) and replica.exits[-1].not_executed


def _needed(job: JobProgress, replica: ReplicaProgress) -> int:
    # A notice about a replica that has failed says that the controller restarts it.
    waits = replica.phase == _CRASHED or (replica.phase == _LOST and bool(job.notice))
    if not replica.init_container:
        return replica.restarts - replica.init_restarts + waits
    if _may_await_another(job, replica):
        return replica.restarts - replica.init_restarts
    return replica.restarts + waits


def _may_await_another(job: JobProgress, replica: ReplicaProgress) -> bool:
    """Return whether another program runs, or has ended since an init container last failed.

    One that is restarted counts as one that runs: it has a limit of its own.
    """
    since = replica.ended
    return any(
        other.started
        # The end of another may soon be that of the job.
        and (not other.is_settled or bool(since and other.ended and other.ended >= since))
        for other in job.replicas
    )


def describe_restarts(replica: ReplicaProgress) -> str:
    """Return how often the replica was restarted, and how its programs ended."""
    codes = [end.exit_code for end in replica.exits]
    times = f"{replica.restarts} time{'' if replica.restarts == 1 else 's'}"
    restarted = f"was restarted {times}" if replica.restarts else "was not restarted"
    if not codes:
        return restarted
    if len(set(codes)) > 1:
        return f"{restarted}; exit codes {', '.join(map(str, codes))}"
    each = " each time" if len(codes) > 1 else ""
    return f"{restarted}; exit code {codes[0]} ({describe_exit_code(codes[0])}){each}"
