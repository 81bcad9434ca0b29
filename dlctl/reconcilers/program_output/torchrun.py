"""torchrun's summary of its processes' failures; torchrun itself exits with 1 for all of them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from dlctl.api.exit_codes import shell_exit_code
from dlctl.reconcilers.program_output.log_text import LogLine

TORCHRUN_EXIT_CODE: Final = 1
_FIELD: Final = re.compile(r" {2}(rank|exitcode|host|traceback) *: (.*)$")
_RANK: Final = re.compile(r"(\d{1,7}) \(local_rank: (\d{1,7})\)")
_CODE: Final = re.compile(r"(-?\d{1,3}) \(pid: \d{1,9}\)")
_EXIT_CODES: Final = re.compile(r"^ {2}exitcode *: (-?\d{1,3}) \(pid: \d", re.MULTILINE)
_MAX_EXIT_CODE: Final = 255
# SIGABRT and SIGTERM: what libraries and torchrun do to processes whose peer has failed.
_CONSEQUENCES: Final = frozenset({134, 143})
# Processes of one node.
_MAX_FAILURES: Final = 256


@attrs.frozen
class TorchrunFailure:
    """The failure of one process, according to the torchrun that started it."""

    rank: int | None
    # 128 + n after a signal.
    exit_code: int


def torchrun_failures(lines: Sequence[LogLine]) -> Sequence[TorchrunFailure]:
    """Return the failures of the last summary, the most likely root cause first.

    torchrun takes the failure that it sees first; here, those that only follow another come last.
    """
    failures = list(_failures(lines))[: -_MAX_FAILURES - 1 : -1]
    return sorted(failures, key=lambda failure: failure.exit_code in _CONSEQUENCES)


def recovered_exit_code(code: int, message: str) -> int:
    """Return the exit code of the process that failed under torchrun; else the given one.

    ``message`` is the container's termination message: the end of its log.
    """
    if code != TORCHRUN_EXIT_CODE:
        return code
    codes = [shell_exit_code(int(found)) for found in _EXIT_CODES.findall(message)]
    # The program may have written anything, and metrics have the code as a label.
    codes = [each for each in codes if each <= _MAX_EXIT_CODE]
    causes = (each for each in reversed(codes) if each not in _CONSEQUENCES)
    return next(causes, codes[-1] if codes else code) or code


def _failures(lines: Sequence[LogLine]) -> Iterator[TorchrunFailure]:
    """Yield the failures of the last summary; the root cause stands last."""
    rank, exit_code = None, None
    for line in lines[_start(lines) :]:
        field = _FIELD.match(line.text)
        if field is None:
            continue
        name, value = field.groups()
        if name == "host":
            rank, exit_code = None, None
        elif name == "rank":
            found = _RANK.match(value)
            rank = int(found[1]) if found else None
        elif name == "exitcode":
            found = _CODE.match(value)
            exit_code = int(found[1]) if found else None
        elif exit_code:
            yield TorchrunFailure(rank, shell_exit_code(exit_code))


def _start(lines: Sequence[LogLine]) -> int:
    # The beginning may be cut off: the kubelet keeps 2,048 bytes.
    starts = (number for number in range(len(lines) - 1, -1, -1) if _is_title(lines[number].text))
    return next(starts, 0)


def _is_title(text: str) -> bool:
    return text.startswith("Failures:")


def is_under_torchrun(output: str) -> bool:
    """Return whether a program's output shows that torchrun has started it."""
    return "torch.distributed.elastic" in output or "torch.distributed.run" in output
