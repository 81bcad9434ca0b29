"""Commands on jobs without a kubeconfig."""

import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from dlctl.cli.embedded.named_clusters import NamedCluster
from dlctl.local.file_lock import write_holder
from tests.support.command_line import Dlctl

MISSING = "dlctl: kubeconfig: /nowhere: the file does not exist; set --kubeconfig, or KUBECONFIG"

CONFIG = """
current-context: one
contexts: [{{name: one, context: {{cluster: one, user: one}}}}]
clusters: [{{name: one, cluster: {{server: "{url}"}}}}]
users: [{{name: one, user: {{}}}}]
"""


def test_directory_is_no_kubeconfig(dlctl: Dlctl, tmp_path: Path) -> None:
    done = dlctl("get", "--kubeconfig", str(tmp_path))
    assert done.code == 2
    assert done.err.startswith(f"dlctl: kubeconfig: {tmp_path}: it is not a file; set --kubeconfig")


@pytest.mark.slow
def test_server_that_hangs_up_is_not_tried_for_long(dlctl: Dlctl, tmp_path: Path) -> None:
    path, connections = tmp_path / "config", list[object]()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        path.write_text(CONFIG.format(url=url))

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = server.accept()
                    connections.append(accepted)
                    accepted.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        done = dlctl("get", "pytorchjob", "a", "--kubeconfig", str(path))
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        "dlctl: GET /apis/kubeflow.org/v1/namespaces/default/pytorchjobs/a: "
    )
    # aiohttp itself tries each request twice.
    assert len(connections) <= 12


@pytest.mark.parametrize("command", ["get", "why a"])
def test_missing_kubeconfig_points_to_an_embedded_cluster(
    dlctl: Dlctl, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    arguments = [*command.split(), "--kubeconfig", "/nowhere"]
    done = dlctl(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"{MISSING}; `dlctl up` starts a cluster on this machine\n"
    cluster = NamedCluster.of("mine")
    with cluster.claimed() as lock:
        write_holder(lock)
        cluster.kubeconfig.touch()
        assert dlctl(*arguments).err == (
            f"{MISSING}; that of the running cluster mine is {cluster.kubeconfig}\n"
        )
    # Not even root can open it.
    unreadable = cluster.directory.with_name("another") / "lock"
    unreadable.parent.mkdir()
    unreadable.symlink_to(unreadable)
    assert dlctl(*arguments).err == f"{MISSING}; `dlctl up` starts a cluster on this machine\n"
