"""Hints for users about a failure, by its cause and the last lines of a program. Pure."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

_CANNOT_START: Final = re.compile(r"cannot start the container: (.+): No such file or directory")
_NO_SCRIPT: Final = re.compile(r"can't open file '([^']+)': \[Errno 2\]")
_NO_FILE: Final = re.compile(r"FileNotFoundError: .*No such file or directory: '(/[^']+)'")
# Where the node starts containers that have no working directory.
_IN_WORK: Final = re.compile(r"/pods/[^/]+/work/(.+)$")
_NO_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?")
_PORT_IN_USE: Final = re.compile(r"Address already in use|EADDRINUSE")
_NO_INPUT: Final = re.compile(r"EOFError: EOF when reading a line|BdbQuit")
_KILLED: Final = re.compile(r"\(SIGKILL\)|signal 9 \(Killed\)|killed by signal: Killed")


def hints(lines: Iterable[str]) -> Iterator[str]:
    """Yield what helps, the most specific first, each once."""
    text = "\n".join(lines)
    if found := _CANNOT_START.search(text):
        yield f"no such file: {found[1]}: is the image mapped? see --image; own code needs --mount"
    for found in (_NO_SCRIPT.search(text), _NO_FILE.search(text)):
        if found and (relative := _IN_WORK.search(found[1])):
            yield f"no such file: {relative[1]}: --workdir DIR is where containers start"
        elif found:
            parent = PurePosixPath(found[1]).parent
            yield (
                f"no such file: {found[1]}: --mount DIR:{parent} shows a directory of this machine "
                "there"
            )
    if found := _NO_MODULE.search(text):
        module = found[1].partition(".")[0]
        yield (
            f"the container's Python has no module {module}: map the image to an environment that "
            "has it, see --image; for a script see --python, or pass its path on with "
            "--env PYTHONPATH"
        )
    if _PORT_IN_USE.search(text):
        yield "a port is in use, by another program of the pod, or of its host network"
    if _NO_INPUT.search(text):
        yield (
            "programs have no stdin: pass values as arguments or variables; for a debugger such as "
            "debugpy, see dlctl up and dlctl port-forward"
        )
    if _KILLED.search(text):
        yield (
            "killed by SIGKILL: is this machine out of memory? `dmesg` names the processes that "
            "the kernel has killed"
        )
