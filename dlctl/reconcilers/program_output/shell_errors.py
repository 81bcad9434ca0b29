"""Commands that could not be run, as shells, interpreters and runtimes report it."""

from collections.abc import Sequence
from typing import Final

from dlctl.reconcilers.program_output.log_text import LogLine

# A script goes on after a missing command: its exit code shows whether the last one failed.
_PHRASES_BY_CODE: Final = {
    126: ("permission denied", "cannot execute", "exec format error", "is a directory"),
    127: ("not found", "no such file or directory", "error while loading shared libraries"),
    128: ("no such file or directory", "executable file not found", "permission denied"),
    # Python's, and those of argument parsers.
    2: (
        "can't open file", "unrecognized arguments", "the following arguments are required",
        "invalid choice:", "no such option", "syntax error",
    ),
    1: ("no module named", "can't find '__main__' module"),
    255: ("exec format error", "no such file or directory"),
}  # fmt: skip
_FINAL_LINES: Final = 20
# mpirun's report names the program in a line of its own.
_EXECUTABLE: Final = "Executable: "


def shell_error(lines: Sequence[LogLine], exit_code: int | None) -> str | None:
    """Return the line that says why the command could not be run; None if there is none."""
    final = lines[-_FINAL_LINES:]
    program = next((line.text for line in final if line.text.startswith(_EXECUTABLE)), None)
    if program is not None and any("unable to" in line.text for line in final):
        return f"mpirun cannot run {program.removeprefix(_EXECUTABLE).strip()}"
    phrases = _PHRASES_BY_CODE.get(exit_code or 0, ())
    for line in reversed(final):
        text = line.text.lower()
        if any(phrase in text for phrase in phrases):
            return line.text.strip()
    return None
