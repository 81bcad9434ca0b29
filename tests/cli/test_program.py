import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from dlctl.dialects.kinds import served_kinds
from dlctl.frameworks.registry import load_frameworks
from tests.support.command_line import Dlctl

QUICK = """
import sys
from dlctl.cli import program
try:
    program.run(["--help"])
except SystemExit:
    heavy = {"aiohttp", "kubernetes_asyncio", "msgspec", "rich", "yaml"} & set(sys.modules)
    print("heavy:", *heavy)
"""

SIGNALLED = """
import os, sys
from dlctl.__main__ import main

signal = int(sys.argv[1])

class Slow:
    def find_spec(self, name, *_):
        if name == "dlctl.cli.controller":
            os.kill(os.getpid(), signal)

sys.meta_path.insert(0, Slow())
sys.argv = ["dlctl", "controller"]
main()
"""


FIRST = """
import sys
before = set(sys.modules)
import dlctl.__main__
print(*sorted(set(sys.modules) - before))
"""


def test_program_imports_nothing_before_it_handles_signals() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["dlctl", "dlctl.__main__"]


def test_unknown_command_is_named_with_the_one_like_it(dlctl: Dlctl) -> None:
    done = dlctl("logz")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("dlctl: error: there is no command logz; did you mean logs?\n")
    other = dlctl("help")
    assert other.err.endswith("there is no command help; `dlctl --help` lists them\n")


def test_manifest_without_a_command_is_to_be_run(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.touch()
    done = dlctl(str(path))
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"there is no command {path}; `dlctl run {path}` runs a job\n")


@pytest.mark.parametrize("command", ["run", "check", "render"])
def test_flag_of_kubectl_for_files_is_not_needed(dlctl: Dlctl, command: str) -> None:
    done = dlctl(command, "-f", "job.yaml")
    assert done.code == 2
    assert done.err.endswith(
        "unrecognized arguments: -f (unlike kubectl, dlctl takes files without a flag)\n"
    )


def test_argument_that_a_command_lacks_is_an_error_with_the_usage_of_the_command(
    dlctl: Dlctl,
) -> None:
    done = dlctl("why", "pytorchjob", "sum", "train")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: dlctl why ")
    assert done.err.endswith("dlctl why: error: unrecognized arguments: train\n")


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", QUICK], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy:"


@pytest.mark.parametrize(
    ("number", "message"),
    [(signal.SIGTERM, ""), (signal.SIGINT, "dlctl: interrupted\n")],
)
def test_signals_end_it_even_during_imports(number: int, message: str) -> None:
    # The exit code shows that a handler was there: without one, the first process of a container
    # would go on.
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(number)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (128 + number, message)


CLOSED = """
import os, sys
from dlctl.__main__ import main

def run(arguments):
    fds = [os.open("/", os.O_RDONLY), *os.pipe()]
    print("to stdout", flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    os.system("echo by another program")
    return 0 if min(fds) > 2 and sys.stdin.read() == "" else 1

import dlctl.cli.program
dlctl.cli.program.run = run
main()
"""


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_streams_are_empty_and_no_other_file_takes_their_place(
    closed: tuple[int, ...],
) -> None:
    def close() -> None:
        for fd in closed:
            os.close(fd)

    done = subprocess.run(
        [sys.executable, "-c", CLOSED],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=close,
    )
    assert done.returncode == 0, done
    assert done.stdout == ("" if 1 in closed else "to stdout\nby another program\n")
    assert done.stderr == ("" if 2 in closed else "to stderr\n")


@pytest.mark.parametrize(
    ("encoding", "name", "shown"),
    [
        ("utf-8", b"\xfcber.yaml", "\\udcfcber.yaml"),
        ("latin-1", "\u6f22.yaml".encode(), "\\u6f22.yaml"),
    ],
)
def test_name_that_cannot_be_printed_is_escaped(
    encoding: str, name: bytes, shown: str, tmp_path: Path
) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "w") as file:
        file.write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    done = subprocess.run(
        [sys.executable, "-m", "dlctl", "check", path],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C.UTF-8"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert shown in done.stdout.decode(encoding)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="no command"),
        pytest.param(["sing"], id="unknown command"),
        pytest.param(["crds", "--loud"], id="unknown flag"),
        pytest.param(["run"], id="missing argument"),
        pytest.param(["run", "job.yaml", "--network", "carrier-pigeon"], id="unknown choice"),
    ],
)
def test_invalid_command_line_exits_2_with_the_usage(dlctl: Dlctl, arguments: list[str]) -> None:
    done = dlctl(*arguments)
    assert done.code == 2
    assert "usage: dlctl" in done.err


def test_version_is_that_of_the_package(dlctl: Dlctl) -> None:
    done = dlctl("--version")
    assert (done.code, done.out) == (0, f"dlctl {version('dlctl')}\n")


@pytest.mark.parametrize("command", ["run", "up", "controller", "crds", "release", "render"])
def test_every_command_has_help(dlctl: Dlctl, command: str) -> None:
    done = dlctl(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"usage: dlctl {command}" in done.out


def test_crds_are_documents_of_kinds_and_their_scalers(dlctl: Dlctl) -> None:
    done = dlctl("crds")
    # Pure Python's loader takes many seconds for the types of pod templates.
    documents = list(yaml.load_all(done.out, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    assert done.code == 0
    assert [document["metadata"]["name"] for document in documents] == [
        resource.group_resource
        for kind in served_kinds(load_frameworks().frameworks)
        for resource in (kind.resource, *kind.scalers)
    ]


@pytest.mark.parametrize("missing", ["re2", "trustme"])
def test_missing_extra_gives_one_clear_message(
    missing: str, dlctl: Dlctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How Python itself notes that a module cannot be imported.
    monkeypatch.setitem(sys.modules, missing, None)
    done = dlctl("run", "job.yaml")
    assert done.code == 2
    assert done.err == (
        "dlctl: the embedded cluster needs optional packages: "
        f"pip install 'dlctl[local]' (missing: {missing})\n"
    )


@pytest.mark.parametrize(
    "command", ["crds", "completion bash", "--version", "run --help", "--help"]
)
def test_full_disk_under_the_output_is_named(command: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dlctl", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
    assert (done.returncode, done.stderr) == (1, "dlctl: No space left on device\n")


@pytest.mark.parametrize(
    "arguments",
    [
        "run job.yaml --workdir .",
        "run job.yaml --mount a:/a",
        "run --kind tf a.py",
        "run --kind tf -m a",
        "up --data a",
    ],
)
def test_deleted_directory_is_named(arguments: str, tmp_path: Path) -> None:
    done = subprocess.run(
        f"mkdir gone; cd gone; rmdir ../gone; {sys.executable} -m dlctl {arguments}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dlctl: the current directory was deleted: change to another\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["run", "{path}"], id="manifest"),
        pytest.param(["run", "--kind", "pytorch", "{path}"], id="script"),
        pytest.param(["run", "job.yaml", "--image", "torch={path}"], id="image"),
        pytest.param(["run", "job.yaml", "--mount", "{path}:/data"], id="mount"),
        pytest.param(["run", "job.yaml", "--workdir", "{path}"], id="workdir"),
    ],
)
def test_path_that_cannot_be_looked_up_exits_2(dlctl: Dlctl, arguments: list[str]) -> None:
    path = f"/{'x' * 300}"
    done = dlctl(*(word.format(path=path) for word in arguments))
    assert (done.code, done.out) == (2, "")
    assert path in done.err
    assert done.err.count("\n") == 1
    # Later, pathlib takes such a path for one that does not exist.
    if sys.version_info < (3, 14):
        assert done.err == f"dlctl: {path}: File name too long\n"
