"""The first cause of the end of an attempt: which replica is to blame, and for what. Pure."""

import datetime
from collections.abc import Iterator, Sequence
from typing import Final, Self

import attrs

from dlctl.api.job import Job, Replica
from dlctl.api.status.verdict import MAX_COLLATERAL, Cause, Confidence, Verdict
from dlctl.reconcilers.failures.evidence import Evidence, Proof
from dlctl.reconcilers.failures.exit_code_evidence import exit_code_evidence
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from dlctl.reconcilers.failures.node_evidence import api_evidence, tie_break
from dlctl.reconcilers.failures.output_evidence import last_words, lost_peer, output_evidence
from dlctl.reconcilers.program_output.log_classes import Weight
from dlctl.reconcilers.program_output.log_text import MAX_LOG_CHARS, log_lines, printable
from dlctl.reconcilers.program_output.torchrun import is_under_torchrun, torchrun_failures
from dlctl.reconcilers.termination import UNOBSERVED_REASONS

# The output of at most this number of replicas is read, and of as many that lost a peer.
_MAX_READ: Final = 32
_MAX_MESSAGE_CHARS: Final = 600
_NO_EVIDENCE: Final = Evidence(
    Cause.UNKNOWN, Proof.NONE, "it has not started", Confidence.LOW, Weight.COLLATERAL
)
# No program can delete its pod, but the client that did is not known.
_DELETED: Final = Evidence(
    Cause.PLATFORM, Proof.POD, "its pod was deleted", Confidence.LOW, Weight.AMBIGUOUS
)


@attrs.frozen
class _Suspect:
    """A replica with the evidence that needs no log."""

    failed_replica: FailedReplica
    # Among equals, the first replica is blamed.
    index: int
    time: datetime.datetime
    output: str
    # The evidence of its node, its pod's reason and its exit code.
    evidence: Evidence
    # The init container that failed; empty if the program has started.
    init_container: str = ""
    # True if too many replicas come before it for its output to be read.
    is_unread: bool = False

    @property
    def message(self) -> str:
        """Return why it ended."""
        # An end of the whole pod is not its init container's.
        is_its_own = self.init_container and self.evidence.proof > Proof.POD
        init = f"init container {self.init_container}: " if is_its_own else ""
        return f"{init}{self.evidence.message}"

    @property
    def is_to_read(self) -> bool:
        return self.evidence.proof > Proof.POD and bool(self.output.strip())

    def with_tie_break(self) -> Self:
        return attrs.evolve(self, evidence=tie_break(self.failed_replica, self.evidence))

    def as_at_least(self, weight: Weight) -> Self:
        evidence = attrs.evolve(self.evidence, weight=max(weight, self.evidence.weight))
        return attrs.evolve(self, evidence=evidence, is_unread=True)

    @property
    def is_consequence(self) -> bool:
        """Return whether its output only says that others are gone."""
        is_proved = self.evidence.proof in (Proof.SUMMARY, Proof.LOG)
        return self.evidence.weight is Weight.COLLATERAL and is_proved

    @property
    def order(self) -> tuple[Weight, Proof, datetime.datetime, int]:
        return *self.evidence.order, self.time, self.index


@attrs.frozen
class Judgement:
    """The judgement of one replica's end by itself."""

    # True if it proves a cause that cannot be a mere consequence.
    shows_cause: bool
    is_consequence: bool
    # True if its output was not read yet: it might show a cause.
    is_unread: bool


def first_cause(
    job: Job, failed_replicas: Sequence[FailedReplica], now: datetime.datetime
) -> Verdict:
    """Return why an attempt ended, from the replicas that ended in it.

    Stronger evidence wins, then the earlier end; what follows from another replica's end never wins
    while any replica has a cause.
    """
    if not failed_replicas:
        return Verdict(Cause.UNKNOWN, Confidence.LOW, "no replica reported why it ended", now)
    blamed = min(_suspects(job, failed_replicas, now), key=lambda suspect: suspect.order)
    return _verdict(job, blamed, failed_replicas)


def judgements(
    job: Job, failed_replicas: Sequence[FailedReplica], now: datetime.datetime
) -> list[Judgement]:
    """Return the judgement of each replica by itself; as many outputs are read as for a gang."""
    judged = sorted(_suspects(job, failed_replicas, now), key=lambda suspect: suspect.index)
    return [_judgement(suspect) for suspect in judged]


def _judgement(suspect: _Suspect) -> Judgement:
    weight = suspect.evidence.weight
    # A replica that lost a peer counts as a consequence if its output was not read.
    is_unread_loser = suspect.is_unread and weight is Weight.COLLATERAL
    return Judgement(
        shows_cause=weight is Weight.CAUSE,
        is_consequence=suspect.is_consequence or is_unread_loser,
        is_unread=suspect.is_unread,
    )


def _suspects(
    job: Job, failed_replicas: Sequence[FailedReplica], now: datetime.datetime
) -> Iterator[_Suspect]:
    """Yield the replicas with the evidence about each."""
    suspects = [_suspect(job, failed, n, now) for n, failed in enumerate(failed_replicas)]
    return (suspect.with_tie_break() for suspect in _with_output_evidence(suspects))


def _suspect(job: Job, failed: FailedReplica, index: int, now: datetime.datetime) -> _Suspect:
    spec = job.replica_spec(failed.replica.type)
    container = spec.container if spec else ""
    message = failed.termination_message(container)
    log = failed.log[-MAX_LOG_CHARS:]
    output = log if message in log else f"{log}\n{message[-MAX_LOG_CHARS:]}"
    return _Suspect(
        failed,
        index,
        failed.time(now),
        output,
        _evidence_without_output(failed, message),
        _init_container(failed, container),
    )


def _init_container(failed: FailedReplica, container: str) -> str:
    found = failed.failed_container(container) if failed.termination else None
    return found.name if found and found.name != container else ""


def _evidence_without_output(failed: FailedReplica, message: str) -> Evidence:
    if found := api_evidence(failed, message):
        return found
    code = _exit_code(failed)
    if code:
        return exit_code_evidence(code)
    if failed.termination is not None:
        return attrs.evolve(_NO_EVIDENCE, message=failed.termination.message)
    return _DELETED if failed.pod.metadata.is_terminating else _NO_EVIDENCE


def _with_output_evidence(suspects: Sequence[_Suspect]) -> Iterator[_Suspect]:
    """Yield the suspects with the evidence in their output, as far as it is read."""
    yield from (suspect for suspect in suspects if not suspect.is_to_read)
    to_read = [(suspect, lost_peer(suspect.output)) for suspect in suspects if suspect.is_to_read]
    # A large gang ends within a second: those that may have a cause by their exit code come first.
    to_read.sort(key=lambda each: (each[0].evidence.weight, each[1], each[0].time))
    # Without its output, the end of a replica may be a mere consequence.
    yield from _read_first([one for one, lost in to_read if not lost], Weight.AMBIGUOUS)
    # Replicas that lost a peer prove less, and must not use up the reads of the others.
    yield from _read_first([one for one, lost in to_read if lost], Weight.COLLATERAL)


def _read_first(suspects: Sequence[_Suspect], unread: Weight) -> Iterator[_Suspect]:
    """Yield the suspects, of which the first are read; the others have at least a weight."""
    yield from map(_read_output, suspects[:_MAX_READ])
    yield from (suspect.as_at_least(unread) for suspect in suspects[_MAX_READ:])


def _read_output(suspect: _Suspect) -> _Suspect:
    lines = log_lines(suspect.output)
    found = output_evidence(lines, _exit_code(suspect.failed_replica))
    if found is None:
        words = last_words(lines)
        message = "\n".join(filter(None, (suspect.evidence.message, words)))
        found = attrs.evolve(suspect.evidence, message=message)
    return attrs.evolve(suspect, evidence=found)


def _verdict(job: Job, blamed: _Suspect, failed_replicas: Sequence[FailedReplica]) -> Verdict:
    evidence = blamed.evidence
    replica = _replica_on(job, failed_replicas, evidence.host) or blamed.failed_replica.replica
    failed = next((each for each in failed_replicas if each.replica == replica), None)
    others = [each.replica for each in failed_replicas if each.replica != replica]
    # Failures that the job does not tolerate come first: the failure policy must not miss them.
    others.sort(key=lambda one: not job.failure_policy_decides(one.type))
    exit_code = evidence.exit_code if evidence.host else _exit_code(blamed.failed_replica)
    return Verdict(
        cause=evidence.cause,
        confidence=evidence.confidence,
        message=printable(blamed.message, _MAX_MESSAGE_CHARS),
        time=blamed.time,
        replica=str(replica),
        pod=failed.pod.metadata.name if failed else job.child_name(replica),
        node=failed.node if failed else "",
        rank=_rank(job, replica, blamed) if evidence.rank is None else evidence.rank,
        exit_code=exit_code if evidence.exit_code is None else evidence.exit_code,
        is_consequence=blamed.is_consequence,
        is_planned=evidence.is_planned,
        collateral=tuple(map(str, others[:MAX_COLLATERAL])),
        collateral_count=len(others),
    )


def _rank(job: Job, replica: Replica, blamed: _Suspect) -> int | None:
    if not is_under_torchrun(blamed.output):
        return job.rank_of(replica)
    # The first process in the list is the one whose end made torchrun give up.
    failures = torchrun_failures(log_lines(blamed.output))
    return failures[0].rank if failures else None


def _replica_on(job: Job, failed_replicas: Sequence[FailedReplica], host: str) -> Replica | None:
    """Return the replica on a host, which a launcher names by its pod or by its node."""
    if not host:
        return None
    name = host.partition(".")[0]
    by_pod = (each for each in job.replicas if job.child_name(each) == name)
    by_node = (each.replica for each in failed_replicas if each.node == host)
    return next(by_pod, None) or next(by_node, None)


def _exit_code(failed: FailedReplica) -> int | None:
    end = failed.termination
    return None if end is None or end.reason in UNOBSERVED_REASONS else end.exit_code
