"""The exceptions that ended Python programs: the last lines of tracebacks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.status.verdict import Cause
from dlctl.reconcilers.program_output.log_classes import LogClass, Weight, class_of
from dlctl.reconcilers.program_output.log_text import LogLine

_TRACEBACK: Final = "Traceback (most recent call last)"
# torchrun indents the tracebacks in its summary by two.
_EXCEPTION: Final = re.compile(r" {0,2}(?P<type>[A-Za-z_][A-Za-z0-9_.]{0,199})(?:: (?P<text>.*))?$")
_USUAL_NAME: Final = re.compile(r"(?:Error|Exception|Interrupt|Exit)$")
# They report the end of another process, which has a cause of its own.
_WRAPPERS: Final = frozenset(
    {"BaseExceptionGroup", "ChildFailedError", "ExceptionGroup", "SystemExit"}
)
# Its first line, which a short log may lack, or the rule above one of its exceptions.
_GROUP: Final = re.compile(r"  +\+(?: Exception Group Traceback|-[-+])")
# The margin of the exceptions in a group.
_MARGIN: Final = re.compile(r" +\| ?")
_REPORTS: Final = ("detected that one or more processes exited", "mpirun failed with exit code")
_BY_TYPE: Final[Mapping[str, tuple[Cause, Weight]]] = {
    "MemoryError": (Cause.OUT_OF_MEMORY, Weight.CAUSE),
    "OutOfMemoryError": (Cause.OUT_OF_MEMORY, Weight.CAUSE),
    # A module is missing in the image.
    "ModuleNotFoundError": (Cause.BAD_COMMAND_OR_IMAGE, Weight.CAUSE),
    "ImportError": (Cause.BAD_COMMAND_OR_IMAGE, Weight.CAUSE),
    "TimeoutError": (Cause.UNKNOWN, Weight.AMBIGUOUS),
    "EOFError": (Cause.USER_CODE, Weight.AMBIGUOUS),
    "CalledProcessError": (Cause.USER_CODE, Weight.AMBIGUOUS),
    "ProcessRaisedException": (Cause.USER_CODE, Weight.AMBIGUOUS),
    "ProcessExitedException": (Cause.USER_CODE, Weight.AMBIGUOUS),
    "ConnectionResetError": (Cause.UNKNOWN, Weight.COLLATERAL),
    "ConnectionRefusedError": (Cause.UNKNOWN, Weight.COLLATERAL),
    "ConnectionAbortedError": (Cause.UNKNOWN, Weight.COLLATERAL),
    "BrokenPipeError": (Cause.UNKNOWN, Weight.COLLATERAL),
    "KeyboardInterrupt": (Cause.UNKNOWN, Weight.COLLATERAL),
    "SignalException": (Cause.UNKNOWN, Weight.COLLATERAL),
}
# A message may go on: NCCL's "Last error" stands three lines below.
_MESSAGE_LINES: Final = 6
# The value of a metric: "MeanSquaredError: 0.034".
_NUMBER: Final = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?%?$")
# A process that goes on for this many lines has handled the exception before them.
_LINES_OF_WORK: Final = 3
# The lines before a traceback that does not end the process.
_IGNORED: Final = ("Exception ignored ", "Error in atexit")
_ASIDES: Final = (*_IGNORED, "Exception in thread")
# The lines between the exceptions of one chain.
_LINKS: Final = ("During handling of", "The above exception was")
# The lines after an exception that ends a process.
_AFTERWORDS: Final = (
    *_ASIDES,
    *_LINKS,
    "wandb:",
    "frame #",
)


@attrs.frozen
class PythonException:
    """An exception that no code handled, as far as the log shows."""

    text: str
    cause: Cause
    weight: Weight
    rank: int | None = None
    # The number of its line in the log.
    number: int = 0


def python_exceptions(lines: Sequence[LogLine]) -> Iterator[PythonException]:
    """Yield the exceptions in a log, in its order, without those that Python ignores."""
    in_traceback = is_ignored = goes_on = False
    ignored_rank: int | None = None
    for number, line in enumerate(_without_margins(lines)):
        if line.text.startswith(_IGNORED):
            in_traceback, is_ignored, goes_on = False, True, True
            ignored_rank = line.rank
            continue
        if _TRACEBACK in line.text:
            # Other processes may write in between.
            is_ignored = is_ignored and goes_on and line.rank == ignored_rank
            in_traceback = True
            continue
        if line.text.startswith("   "):
            in_traceback = in_traceback or line.text.lstrip().startswith('File "')
            continue
        if line.text.startswith('  File "'):
            in_traceback = True
            continue
        match = _EXCEPTION.match(line.text)
        if match and (in_traceback or _looks_raised(match["type"], match["text"] or "")):
            name = match["type"].rpartition(".")[2]
            ignored = is_ignored and (in_traceback or goes_on)
            if not (ignored or _is_report(name, line.text)):
                following = lines[number + 1 : number + 1 + _MESSAGE_LINES]
                yield attrs.evolve(_exception(name, line, following), number=number)
        if line.text.strip():
            in_traceback, goes_on = False, line.text.startswith(_LINKS)


def _without_margins(lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Yield the lines, those of exceptions in a group as if each stood alone."""
    in_group = False
    for line in lines:
        begins = _GROUP.match(line.text) is not None
        in_group = begins or (in_group and line.text.startswith(" "))
        margin = _MARGIN.match(line.text) if in_group else None
        yield attrs.evolve(line, text=line.text[margin.end() :]) if margin else line


def went_on_after(lines: Sequence[LogLine]) -> Sequence[bool]:
    """Return for each line whether the process that wrote it worked on, before it lost a peer.

    An exception in such a line was handled.
    """
    found, work, has_end = [False] * len(lines), 0, False
    for number in range(len(lines) - 1, -1, -1):
        text = lines[number].text
        found[number] = has_end and work >= _LINES_OF_WORK
        if _ends_process(lines, number):
            work, has_end = 0, True
        else:
            work += _is_work(text)
    return found


def _ends_process(lines: Sequence[LogLine], number: int) -> bool:
    """Return whether a line begins what may be the last words of a process."""
    text = lines[number].text
    if _TRACEBACK in text:
        return not (number and lines[number - 1].text.startswith(_ASIDES))
    found = class_of(text)
    return found is not None and found.weight is Weight.COLLATERAL


def _is_work(text: str) -> bool:
    """Return whether a line is output of a program that goes on."""
    if not text.strip() or text[0].isspace() or text.startswith(_AFTERWORDS):
        return False
    match = _EXCEPTION.match(text)
    return match is None or not _looks_raised(match["type"], match["text"] or "")


def _looks_raised(name: str, text: str) -> bool:
    """Return whether a line outside a traceback is an exception."""
    return bool(_USUAL_NAME.search(name)) and not _NUMBER.match(text.strip())


def _is_report(name: str, text: str) -> bool:
    # NCCL's error codes stand in the messages of exceptions.
    is_code = name.startswith("nccl")
    return is_code or name in _WRAPPERS or any(report in text for report in _REPORTS)


def _exception(name: str, line: LogLine, following: Sequence[LogLine]) -> PythonException:
    found = class_of(line.text)
    if found is not None and found.weight is not Weight.CAUSE:
        found = _class_of_message(following) or found
    cause, weight = _BY_TYPE.get(name, (Cause.USER_CODE, Weight.CAUSE))
    if found is not None:
        cause, weight = found.cause, found.weight
    return PythonException(line.text.strip(), cause, weight, line.rank)


def _class_of_message(following: Sequence[LogLine]) -> LogClass | None:
    for line in following:
        if not line.text.strip() or _TRACEBACK in line.text:
            return None
        if found := class_of(line.text):
            return found
    return None
