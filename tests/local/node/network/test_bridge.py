"""The bridge of a node, in namespaces of a process of its own."""

import subprocess
import sys
from typing import Final

import pytest

_NO_NAMESPACES: Final = 3
_SCRIPT: Final = f"""
import os
import sys
from dlctl.local.node import linux
from dlctl.local.node.network.bridge import Bridge

try:
    linux.unshare(linux.CLONE_NEWNET | (linux.CLONE_NEWUSER if os.geteuid() else 0))
except OSError:
    sys.exit({_NO_NAMESPACES})
bridge = Bridge()
before = len(os.listdir("/proc/self/fd"))
try:
    bridge.attach("uid", "10.244.0.300")
except OSError:
    print("refused", len(os.listdir("/proc/self/fd")) - before)
"""


def test_pod_network_that_cannot_be_set_up_leaves_no_namespace_open() -> None:
    argv = [sys.executable, "-c", _SCRIPT]
    done = subprocess.run(argv, capture_output=True, timeout=30, check=False)
    if done.returncode == _NO_NAMESPACES:
        pytest.skip("no namespaces")
    assert done.stdout.decode() == "refused 0\n", done.stderr.decode()
