"""Move the agent into its own namespaces, as root or as an ordinary user.

Runs once, before anything else; if refused, it raises OSError, and nothing has changed.
"""

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

from dlctl.local.node import linux
from dlctl.local.node.agent.mounts import add_message_file

if TYPE_CHECKING:
    from dlctl.local.node.network.bridge import Bridge


def _enter_namespaces(*, user_namespace: bool) -> None:
    """Enter new namespaces; the caller's process becomes the waiting parent."""
    uid, gid = os.geteuid(), os.getegid()
    own = linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWPID | linux.CLONE_NEWUTS
    linux.unshare(own | (linux.CLONE_NEWUSER if user_namespace else 0))
    if user_namespace:
        # All users keep their IDs, so that files look as they do outside.
        _write("/proc/self/setgroups", b"deny")
        _write("/proc/self/uid_map", b"%d %d 1" % (uid, uid))
        _write("/proc/self/gid_map", b"%d %d 1" % (gid, gid))


def _write(path: str, content: bytes) -> None:
    # The kernel accepts each of these files in a single write only.
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)


def fork_first_process(own_namespace_fd: int) -> int:
    """Fork the first process of a new PID namespace, and return as :func:`os.fork` does.

    :raises OSError: if the system allows no further process.
    """
    # Affects only the next child.
    linux.unshare(linux.CLONE_NEWPID)
    pid = None
    try:
        pid = os.fork()
    finally:
        # Also without a child: otherwise the next namespace would be refused.
        if pid != 0:
            linux.setns(own_namespace_fd, linux.CLONE_NEWPID)
    return pid


def isolate(node: socket.socket, *, user_namespace: bool) -> "Bridge":
    """Continue as the first process of new namespaces; the caller's process waits for it."""
    _enter_namespaces(user_namespace=user_namespace)
    linux.die_with_parent(signal.SIGKILL)
    if child := os.fork():
        node.close()
        os._exit(max(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    linux.die_with_parent(signal.SIGKILL)
    linux.mount("", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    try:
        linux.mount("proc", "/proc", "proc")
    except PermissionError:
        # A machine that masks parts of its /proc allows no new one; PIDs then look foreign, nothing
        # more.
        sys.stderr.write("no separate /proc\n")
    add_message_file()
    from dlctl.local.node.network.bridge import Bridge

    return Bridge()
