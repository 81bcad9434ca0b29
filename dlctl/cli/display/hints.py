"""Hints for users about a failure, by its cause and the last lines of a program. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

# Where the node starts containers that have no working directory.
_IN_WORK: Final = re.compile(r"/pods/[^/]+/work/(.+)$")
# Variables by which frameworks find their peers, and the kind whose replicas have them.
_KIND_BY_VARIABLE: Final = {
    **dict.fromkeys(
        ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"), "a PyTorchJob with a Master"
    ),
    "TF_CONFIG": "a TFJob of more than one replica",
    **dict.fromkeys(("COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID"), "a JAXJob"),
    **dict.fromkeys(("DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_NUM_WORKER"), "an MXJob"),
    **dict.fromkeys(("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), "mpirun of an MPIJob"),
}


def hints(lines: Iterable[str]) -> Iterator[str]:
    """Yield what helps, the most specific first, one about each name."""
    text, named = "\n".join(lines), set[str]()
    for pattern, hint in _HINTS:
        found = re.search(pattern, text, re.MULTILINE)
        if found and named.isdisjoint(found.groups()):
            named.update(found.groups())
            yield hint(found[1]) if callable(hint) else hint.format(*found.groups())


def _missing_file(path: str) -> str:
    if relative := _IN_WORK.search(path):
        path = relative[1]
    elif path.startswith("/"):
        return f"file not found: {path}: {_mount(path)}"
    return f"file not found: {path}: --workdir DIR is where containers start"


def _missing_variable(name: str) -> str:
    if kind := _KIND_BY_VARIABLE.get(name):
        return f"no variable {name}: {kind} sets it; choose the kind by what the program reads"
    return (
        f"no variable {name}: those of your shell are not passed on: --env {name} for a script, "
        "env in a manifest"
    )


def _no_access(path: str) -> str:
    return f"no access to {path}: {_mount(path)}"


def _mount(path: str) -> str:
    parent = PurePosixPath(path).parent
    if parent == parent.parent:
        # Nothing can be mounted over the root.
        return f"--mount PATH:{path} shows a file or directory of this machine there"
    return f"--mount DIR:{parent} shows a directory of this machine there"


_MAPPED: Final = "is the image mapped? see --image, or --python for a script"
# What is found in the lines; and the hint, or a function of what the first group has found.
_HINTS: Final[Sequence[tuple[str, str | Callable[[str], str]]]] = (
    (
        r"cannot start the container: (.+): No such file or directory",
        f"file not found: {{}}: {_MAPPED}; own code needs --mount",
    ),
    (
        r"cannot start the container: (.+): Permission denied",
        "not executable: {}: `chmod +x` it, or name its interpreter in the command",
    ),
    (
        r"cannot start the container: (.+): Exec format error",
        "no program of this machine: {}: does a script begin with a line such as #!/bin/sh?",
    ),
    (
        r"^[^:\n]+: (?:line )?\d+: (\S+): (?:command )?not found$",
        f"program not found: {{}}: {_MAPPED}",
    ),
    (
        # As Python's subprocess reports a program.
        r"in _execute_child\n(?: .*\n)*FileNotFoundError: .*No such file or directory: '([^']+)'",
        f"program not found: {{}}: {_MAPPED}",
    ),
    (r"can't open file '([^']+)': \[Errno 2\]", _missing_file),
    (r"FileNotFoundError: .*No such file or directory: '([^']+)'", _missing_file),
    (
        r"(?:Permission denied|Read-only file system|Operation not permitted): '(/[^']+)'",
        _no_access,
    ),
    (
        r"No module named (([\w.]+)\.__main__); '[\w.]+' is a package",
        "{1} is a package without a __main__.py: name one of its modules, such as {1}.train",
    ),
    (
        r"No module named '?([\w.]+)'?",
        (
            "the container's Python has no module {}: map the image to an environment that has it, "
            "see --image; for a script see --python, or pass its path on with --env PYTHONPATH"
        ),
    ),
    (
        # As Python reports a variable of the environment.
        r"\bos(?:\.py|>)\", line \d+, in __getitem__\n(?: .*\n)*KeyError: '([^']+)'",
        _missing_variable,
    ),
    (
        r"No (?:CUDA|HIP) GPUs are available|no (?:CUDA|ROCm)-capable device is detected",
        (
            "a container sees only the GPUs that it requests: --gpus N for a script, "
            "resources.limits in a manifest; --ignore-gpus shows all"
        ),
    ),
    (
        r"Address already in use|EADDRINUSE",
        "the port is in use by another program of the pod, or on the host network, of this machine",
    ),
    (
        r"mpirun has detected an attempt to run as root",
        (
            "mpirun refuses to run as root, as it does in most images: add --allow-run-as-root to "
            "its arguments"
        ),
    ),
    (
        r"There are not enough slots available",
        (
            "mpirun starts more processes than the workers have slots: change -np, the number of "
            "workers, or slotsPerWorker"
        ),
    ),
    (
        r"EOFError: EOF when reading a line|BdbQuit",
        (
            "programs have no stdin: pass values as arguments or variables; for a debugger such as "
            "debugpy, see dlctl up and dlctl port-forward"
        ),
    ),
    (
        r"\(SIGKILL\)|signal 9 \(Killed\)|killed by signal: Killed",
        (
            "killed by SIGKILL: is this machine out of memory? `dmesg` names the processes that "
            "the kernel has killed"
        ),
    ),
)
