"""Reports of launchers about the process that failed first: mpirun, mpiexec and horovodrun."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from dlctl.api.exit_codes import SIGNAL_BASE, shell_exit_code
from dlctl.reconcilers.program_output.log_text import LogLine

_HOST: Final = r"(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]{0,252})"
# Open MPI up to 4 and PRRTE of 5, which breaks its lines.
_NOTICED: Final = re.compile(
    rf"noticed that process rank (?P<rank>\d{{1,7}})(?: with PID \d{{1,9}} on node {_HOST})?"
    r" exited on signal (?P<signal>\d{1,2})"
)
_DETECTED: Final = re.compile(
    r"detected that one or more processes exited with non-zero status, thus causing the job to be"
    r" terminated\. The first process to do so was:"
    r" Process name: (?P<name>\S{1,300}) Exit code: (?P<code>-?\d{1,3})"
)
# Open MPI and PRRTE name a process [job,rank] or [namespace@job,rank].
_MPI_NAME: Final = re.compile(r"\[.{0,280},(?P<rank>\d{1,7})\]")
# horovodrun names it by its rank, and in elastic jobs by its host and local rank.
_HOROVOD_NAME: Final = re.compile(rf"(?:{_HOST}\[\d{{1,7}}\]|(?P<rank>\d{{1,7}}))")
_LOST_DAEMON: Final = re.compile(rf"Remote daemon: \S{{1,80}} on node {_HOST}")
# ssh says which host it was, and mpirun then what it usually means.
_CLOSED: Final = re.compile(
    rf"Connection to {_HOST} closed by remote host\..{{0,200}}unable to reliably start one or more"
)
_RUNNING_AT: Final = re.compile(rf"(?:RANK (?P<rank>\d{{1,7}}) )?PID \d{{1,9}} RUNNING AT {_HOST}")
_EXIT_CODE: Final = re.compile(r"EXIT CODE: (?P<code>\d{1,3})")
_BY_SIGNAL: Final = re.compile(r"(?:KILLED BY SIGNAL: |\(signal )(?P<signal>\d{1,2})")
_ABORTED: Final = re.compile(
    r"Abort\((?P<code>\d{1,10})\) on node \d{1,7} \(rank (?P<rank>\d{1,7}) in comm \d{1,10}\):"
    r"(?: (?P<error>Fatal error in [^,]{1,200}))?"
)
_MPI_ABORT: Final = re.compile(
    r"MPI_ABORT was invoked on rank (?P<rank>\d{1,7}) in communicator .{1,200}"
    r"(?:with errorcode|Errorcode:) (?P<code>-?\d{1,10})"
)
# MPICH's codes have their class in these bits; connections fail with the class of other errors.
_MPI_ERROR_CLASSES: Final = 0x7F
_MPI_ERR_OTHER: Final = 15
_CRASH_SIGNALS: Final = frozenset({4, 6, 7, 8, 9, 11, 15})
# Hydra's proxy sets it when a process closes its connection, at times over the true code.
_HYDRA_UNKNOWN: Final = 1
_HYDRA_TITLE: Final = "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
# A report is this many lines long at most.
_REPORT_LINES: Final = 16
# A launcher writes one, and each is searched for all that it may say.
_MAX_REPORTS: Final = 20


@attrs.frozen
class LaunchedFailure:
    """The failure of one process, according to the launcher that started it."""

    rank: int | None = None
    # As the launcher knows it; empty if it names none.
    host: str = ""
    # 128 + n after a signal; None if the launcher does not know it.
    exit_code: int | None = None
    # What MPI itself ended the process for, or knows of its end; empty if it says nothing.
    mpi_error: str = ""


def launched_failure(lines: Sequence[LogLine]) -> LaunchedFailure | None:
    """Return the process that a launcher reports as the first to fail; None without a report."""
    return next(filter(None, (_reported(lines, *each) for each in _REPORTS)), None)


def _reported(
    lines: Sequence[LogLine], title: str, read: Callable[[str], LaunchedFailure | None]
) -> LaunchedFailure | None:
    titles = (number for number, line in enumerate(lines) if title in line.text)
    for number in itertools.islice(titles, _MAX_REPORTS):
        report = " ".join(each.text for each in lines[number : number + _REPORT_LINES])
        if found := read(" ".join(report.split())):
            return found
    return None


def _noticed(report: str) -> LaunchedFailure | None:
    found = _NOTICED.search(report)
    return _failure(found, SIGNAL_BASE + int(found["signal"])) if found else None


def _detected(report: str) -> LaunchedFailure | None:
    found = _DETECTED.search(report)
    if found is None:
        return None
    code, name = int(found["code"]), found["name"]
    # A failed process has no exit code of 0, whatever its launcher says.
    exit_code = SIGNAL_BASE if code == 0 else shell_exit_code(code)
    if mpi := _MPI_NAME.fullmatch(name):
        return LaunchedFailure(int(mpi["rank"]), exit_code=exit_code)
    horovod = _HOROVOD_NAME.fullmatch(name)
    return _failure(horovod, exit_code) if horovod else LaunchedFailure(exit_code=exit_code)


def _bad_termination(report: str) -> LaunchedFailure | None:
    found = _RUNNING_AT.search(report)
    if found is None:
        return None
    # Beside a signal, Hydra's exit code is that of the processes which it killed afterwards.
    by_signal, code = _BY_SIGNAL.search(report), _EXIT_CODE.search(report)
    if by_signal:
        return _failure(found, SIGNAL_BASE + int(by_signal["signal"]))
    if code and int(code["code"]) == _HYDRA_UNKNOWN:
        return attrs.evolve(_failure(found, None), mpi_error="ended without MPI_Finalize")
    return _failure(found, _hydra_exit_code(int(code["code"])) if code else None)


def _hydra_exit_code(code: int) -> int:
    # It shows a signal by its number alone, and does not always spell it out.
    return SIGNAL_BASE + code if code in _CRASH_SIGNALS else code


def _lost_daemon(report: str) -> LaunchedFailure | None:
    found = _LOST_DAEMON.search(report) or _CLOSED.search(report)
    return LaunchedFailure(host=found["host"]) if found else None


def _aborted(report: str) -> LaunchedFailure | None:
    found = _ABORTED.search(report) or _MPI_ABORT.search(report)
    if found is None or found.groupdict().get("error"):
        return None
    return _failure(found, int(found["code"]) & 0xFF or None)


def _aborted_by_mpi(report: str) -> LaunchedFailure | None:
    found = _ABORTED.search(report)
    if found is None or not found["error"]:
        return None
    code = int(found["code"]) & _MPI_ERROR_CLASSES
    exit_code = code if code != _MPI_ERR_OTHER else None
    return LaunchedFailure(int(found["rank"]), exit_code=exit_code, mpi_error=found["error"])


def _failure(found: re.Match[str], exit_code: int | None) -> LaunchedFailure:
    parts = found.groupdict()
    rank = parts.get("rank")
    return LaunchedFailure(int(rank) if rank else None, parts.get("host") or "", exit_code)


_REPORTS: Final = (
    ("MPI_ABORT was invoked on rank", _aborted),
    ("Abort(", _aborted),
    ("noticed that process rank", _noticed),
    ("detected that one or more processes exited", _detected),
    (_HYDRA_TITLE, _bad_termination),
    # It may be a rank that cannot reach another one, which has failed before.
    ("Abort(", _aborted_by_mpi),
    ("lost communication with a remote daemon", _lost_daemon),
    ("closed by remote host.", _lost_daemon),
)
