"""Evidence from a replica's output about its end: launchers' summaries and classes of log lines."""

import enum
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from dlctl.api.status.verdict import Cause, Confidence
from dlctl.reconcilers.failures.evidence import Evidence, Proof
from dlctl.reconcilers.failures.exit_code_evidence import KILLED, STOPPED, exit_code_evidence
from dlctl.reconcilers.program_output.launchers import LaunchedFailure, launched_failure
from dlctl.reconcilers.program_output.log_classes import (
    COLLATERAL,
    HARDWARE,
    Weight,
    class_of,
    is_advice,
    is_of,
)
from dlctl.reconcilers.program_output.log_text import LogLine
from dlctl.reconcilers.program_output.python_exceptions import python_exceptions, went_on_after
from dlctl.reconcilers.program_output.shell_errors import shell_error
from dlctl.reconcilers.program_output.torchrun import TorchrunFailure, torchrun_failures

# A killed process says no last words, but may have announced what it was killed for.
_BEFORE_KILL: Final = frozenset({Cause.HARDWARE, Cause.OUT_OF_MEMORY})
# Programs end with these when an exception or a library's check ends them.
_CODES_OF_EXCEPTIONS: Final = frozenset({1, 134})
# Libraries also warn about connections while they start: only the end of a log counts.
_FINAL_LINES: Final = 60
# Enough for several processes, each with a traceback.
_TRACEBACK_LINES: Final = 500
_TAIL_CHARS: Final = 16 * 1024
# Exceptions of libraries about lost peers are a few lines long.
_LAST_LINES: Final = 5
_SHOWN_LINES: Final = 3
_SHOWN_LINE_CHARS: Final = 160
_LOST: Final = Evidence(
    Cause.UNKNOWN, Proof.SUMMARY, "its launcher lost the connection to it", Confidence.LOW
)


class PeerLoss(enum.IntEnum):
    """Where an output says that a peer was lost."""

    NONE = 0
    # Something else follows, which may be the cause.
    BEFORE = 1
    LAST = 2


def output_evidence(lines: Sequence[LogLine], exit_code: int | None) -> Evidence | None:
    """Return what the output proves, given the container's exit code; None if nothing."""
    if failures := torchrun_failures(lines):
        return _of_torchrun(failures, lines)
    if launched := launched_failure(lines):
        return _of_launcher(launched, lines)
    return _logged(lines, exit_code, is_one_process=len({line.rank for line in lines}) == 1)


def last_words(lines: Sequence[LogLine]) -> str:
    """Return the last informative lines of an output, shortened."""
    shown = [line.text.strip() for line in lines[-_FINAL_LINES:] if _informs(line.text)]
    return "\n".join(text[:_SHOWN_LINE_CHARS] for text in shown[-_SHOWN_LINES:])


def lost_peer(output: str) -> PeerLoss:
    """Return whether an output says, at its end, that a peer was lost; quick, for many replicas."""
    lines = output[-_TAIL_CHARS:].splitlines()[-_FINAL_LINES:]
    if is_of(COLLATERAL, "\n".join(lines[-_LAST_LINES:])):
        return PeerLoss.LAST
    return PeerLoss.BEFORE if is_of(COLLATERAL, "\n".join(lines)) else PeerLoss.NONE


def _informs(text: str) -> bool:
    # Rules of dashes and equals signs frame launchers' reports.
    return bool(text.strip(" -=*")) and not is_advice(text)


def _of_torchrun(failures: Sequence[TorchrunFailure], lines: Sequence[LogLine]) -> Evidence:
    root = failures[0]
    logged = _logged(lines, root.exit_code)
    if logged is not None and logged.rank is not None:
        root = next((each for each in failures if each.rank == logged.rank), root)
    # Lines may be of other processes, the code is this one's.
    is_own = logged is not None and (
        logged.weight is Weight.CAUSE or root.exit_code in _CODES_OF_EXCEPTIONS
    )
    found = logged if logged is not None and is_own else exit_code_evidence(root.exit_code)
    if logged is None and root.exit_code == 1:
        # Without the program's exception, the summaries of all nodes look the same.
        found = attrs.evolve(found, weight=Weight.AMBIGUOUS)
    return attrs.evolve(
        found,
        proof=Proof.SUMMARY,
        confidence=_confidence(found),
        exit_code=root.exit_code,
        rank=root.rank,
    )


def _of_launcher(failure: LaunchedFailure, lines: Sequence[LogLine]) -> Evidence:
    code = failure.exit_code
    logged = _logged(lines, None)
    found = exit_code_evidence(code) if code else _LOST
    if failure.mpi_error:
        # Without a code, it could not reach another rank, which may have failed before.
        weight = found.weight if code else Weight.AMBIGUOUS
        found = attrs.evolve(found, message=failure.mpi_error, weight=weight)
    if logged is not None and logged.weight is Weight.CAUSE:
        if code in STOPPED or code == KILLED:
            # Hydra reports a process that it has killed because of another one's end.
            return logged
        # An exception of another process did not come first.
        found = found if logged.rank not in (None, failure.rank) else logged
    process = f"rank {failure.rank}" if failure.rank is not None else "a process"
    place = f" on {failure.host}" if failure.host else ""
    return attrs.evolve(
        found,
        proof=Proof.SUMMARY,
        confidence=_confidence(found),
        message=f"{process}{place} failed: {found.message}",
        exit_code=code,
        rank=failure.rank,
        host=failure.host,
    )


def _confidence(found: Evidence) -> Confidence:
    is_known = found.cause is not Cause.UNKNOWN and found.weight is Weight.CAUSE
    return Confidence.MEDIUM if is_known else Confidence.LOW


def _logged(
    lines: Sequence[LogLine], exit_code: int | None, *, is_one_process: bool = False
) -> Evidence | None:
    """Return the strongest evidence in the lines; of equals, the last."""
    raised = _of_exceptions(lines[-_TRACEBACK_LINES:], is_one_process=is_one_process)
    found = [*_of_lines(lines), *raised]
    if not any(each.weight is Weight.CAUSE for each in found):
        # A line far above the end may be a mere warning: an exception at the end says more.
        found += _of_hardware(lines[:-_FINAL_LINES])
    if error := shell_error(lines, exit_code):
        found.append(_evidence(Cause.BAD_COMMAND_OR_IMAGE, Weight.CAUSE, error))
    if exit_code in STOPPED:
        return None
    if exit_code == KILLED:
        found = [each for each in found if each.cause in _BEFORE_KILL]
    return min(reversed(found), key=_strength, default=None)


def _strength(evidence: Evidence) -> tuple[bool, Weight]:
    return evidence.cause is not Cause.HARDWARE, evidence.weight


def _of_exceptions(lines: Sequence[LogLine], *, is_one_process: bool) -> Iterator[Evidence]:
    found = list(python_exceptions(lines))
    went_on = went_on_after(lines) if found and is_one_process else ()
    for each in found:
        was_handled = bool(went_on) and went_on[each.number]
        weight = Weight.COLLATERAL if was_handled else each.weight
        yield _evidence(each.cause, weight, each.text, each.rank)


def _of_lines(lines: Sequence[LogLine]) -> Iterator[Evidence]:
    for line in lines[-_FINAL_LINES:]:
        found = class_of(line.text)
        if found is not None and not is_advice(line.text):
            yield _evidence(found.cause, found.weight, line.text.strip(), line.rank)


def _of_hardware(lines: Sequence[LogLine]) -> Iterator[Evidence]:
    if not is_of(HARDWARE, "\n".join(line.text for line in lines)):
        return
    for line in lines:
        if class_of(line.text) is HARDWARE and not is_advice(line.text):
            yield _evidence(HARDWARE.cause, HARDWARE.weight, line.text.strip(), line.rank)


def _evidence(cause: Cause, weight: Weight, text: str, rank: int | None = None) -> Evidence:
    confidence = Confidence.MEDIUM if weight is Weight.CAUSE else Confidence.LOW
    return Evidence(cause, Proof.LOG, text, confidence, weight, rank=rank)
