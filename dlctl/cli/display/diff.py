"""Changes between two snapshots of a job, as log lines. Pure."""

from collections.abc import Iterator

from dlctl.api.exit_codes import describe_exit_code
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ReplicaProgress


def diff_lines(before: JobProgress, after: JobProgress) -> Iterator[str]:
    """Yield a line if the job itself changed, and one for each replica that changed."""
    if (before.phase, before.is_deleted) != (after.phase, after.is_deleted):
        yield f"{after}: {_phase(after)}"
    if after.notice and before.notice != after.notice:
        yield f"{after}: {after.notice}"
    for replica in after.replicas:
        last = before.replica(replica.name)
        if last is None or _visible(last) != _visible(replica):
            yield f"{after.key.name} {replica.name}: {_outcome(replica)}"


def _phase(job: JobProgress) -> str:
    if job.is_deleted:
        return "deleted"
    return f"{job.phase}, {job.state}" if job.is_finished else str(job.phase or "New")


def _visible(replica: ReplicaProgress) -> tuple[str, str, int, int | None, str]:
    return replica.pod, replica.phase, replica.restarts, replica.exit_code, replica.waiting_message


def _outcome(replica: ReplicaProgress) -> str:
    facts = [replica.phase]
    if replica.exit_code is not None:
        facts.append(f"exit code {replica.exit_code} ({describe_exit_code(replica.exit_code)})")
    if replica.restarts:
        facts.append(f"{replica.restarts} restart{'s' if replica.restarts > 1 else ''}")
    if replica.pod:
        facts.append(f"pod {replica.pod}")
    return ": ".join(filter(None, (", ".join(facts), replica.waiting_message)))
