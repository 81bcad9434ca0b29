import sys
from pathlib import Path

import pytest

from tests.support.command_line import Dlctl


@pytest.mark.parametrize("command", [("run", "job.yaml"), ("up",)])
def test_other_systems_are_told_what_works(
    dlctl: Dlctl, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    done = dlctl(*command)
    assert done.code == 2
    assert "needs Linux, this is darwin" in done.err
    assert "`dlctl get`, work here" in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("accelerator", "write NAME=VALUE", id="no value"),
        pytest.param("my gpu=a100", "name part must consist of", id="name"),
        pytest.param("zone/a/b=1", "a valid label key must", id="name with two slashes"),
        pytest.param("gpu=NVIDIA A100", "a valid label must", id="value"),
    ],
)
@pytest.mark.parametrize("command", ["run", "up"])
def test_label_that_no_node_can_have_is_refused_before_the_start(
    dlctl: Dlctl, command: str, text: str, message: str
) -> None:
    done = dlctl(command, "--node-label", text, *(["job.yaml"] if command == "run" else []))
    assert done.code == 2
    assert done.err.startswith(f"dlctl: --node-label {text}: {message}")


def test_home_directory_may_be_a_tilde_in_each_flag_that_takes_a_path(
    dlctl: Dlctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    (here / "train.py").write_text("print('trains')")
    # A shell leaves it to the program after an equals sign.
    flags = ("--logs=~/logs", "--record=~/screen.svg", "--volumes=~/volumes", "--workdir=~")
    done = dlctl("run", *flags, "--kind", "jax", "train.py")
    assert done.code == 0, done.err
    assert sorted(path.name for path in home.iterdir()) == ["logs", "screen.svg", "volumes"]
    assert [path.name for path in here.iterdir()] == ["train.py"]
