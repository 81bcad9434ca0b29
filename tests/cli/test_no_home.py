"""Users without a home directory: no variable, and no entry in /etc/passwd, as in containers."""

import os
import pwd
import subprocess
import sys
from typing import Any

import pytest

from tests.support.command_line import Dlctl, Written, script_job

# The library of kubeconfigs looks for a home once, as it is imported.
_GETS = """
import pwd, sys
from dlctl.cli.program import run

def unknown(*_):
    raise KeyError("no entry")

pwd.getpwuid = unknown
sys.exit(run(["get", "--kubeconfig", sys.argv[1]]))
"""


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> Any:
        raise KeyError("no entry")

    for name in ("HOME", "KUBECONFIG", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


def test_job_succeeds_without_a_home_directory(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("run", written(script_job("print('ready')")), "--timeout", "20")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("get", "kubeconfig: ~/.kube/config: the file does not exist", id="kubeconfig"),
        pytest.param("get --kubeconfig ~/c", "~/c: the file does not exist", id="named one"),
        pytest.param("up --detach", "XDG_STATE_HOME names another place", id="named cluster"),
        pytest.param("down", "XDG_STATE_HOME names another place", id="end of one"),
        pytest.param("run a.yaml --mount ~/a:/a", "~/a does not exist", id="mount"),
        pytest.param("run a.yaml --workdir ~/a", "--workdir ~/a", id="workdir"),
        pytest.param("run a.yaml --image a=~/a", "~/a does not exist", id="image"),
        pytest.param("run --kind tf ~/a.py", "no script ~/a.py", id="script"),
        pytest.param("run --kind tf {} --python ~/a", "--python ~/a", id="python"),
    ],
)
def test_what_is_looked_up_there_is_missing(dlctl: Dlctl, arguments: str, message: str) -> None:
    done = dlctl(*arguments.format(__file__).split())
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_library_that_needs_one_is_explained() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _GETS, __file__],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dlctl: the user has no home directory: set HOME to one\n"
