"""Mounts of the node, in a mount namespace of their own."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dlctl.local.node import linux
from dlctl.local.node.agent.mounts import add_message_file
from dlctl.local.node.protocol import MESSAGE_PATH

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a mount namespace")


def _in_a_namespace(function: str, *args: str) -> str:
    """Call a function of this module in a process that has its own mounts; return its output."""
    code = f"import sys; from {__name__} import {function} as f; f(*sys.argv[1:])"
    argv = ["unshare", "--mount", sys.executable, "-c", code, *args]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout


def _seen(kept: str) -> str:
    seen = (Path(MESSAGE_PATH).exists(), Path("/dev/null").is_char_device(), Path(kept).exists())
    return " ".join(map(str, seen))


def show_message_file(kept: str) -> None:
    add_message_file()
    sys.stdout.write(_seen(kept))


def show_refused_message_file(kept: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # One more file can be opened: the copy of /dev fails once it has begun.
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    add_message_file()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    sys.stdout.write(_seen(kept))


def show_unopened_devices() -> None:
    linux.mount("tmpfs", "/tmp", "tmpfs")
    kept = Path("/tmp/kept")
    kept.touch()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    # No file can be opened: the copy of /dev does not begin.
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    add_message_file()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    sys.stdout.write(_seen(str(kept)))


def test_message_file_is_added_to_the_devices(tmp_path: Path) -> None:
    assert _in_a_namespace("show_message_file", str(tmp_path)) == "True True True"


def test_machine_that_refuses_the_message_file_keeps_what_it_has(tmp_path: Path) -> None:
    assert _in_a_namespace("show_refused_message_file", str(tmp_path)) == "False True True"


def test_mount_of_the_machine_stays_if_the_devices_are_not_copied() -> None:
    assert _in_a_namespace("show_unopened_devices") == "False True True"
