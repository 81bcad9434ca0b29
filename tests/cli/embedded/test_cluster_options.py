import sys

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
