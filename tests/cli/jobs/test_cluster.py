"""Commands on jobs without a kubeconfig."""

from pathlib import Path

import pytest

from dlctl.cli.embedded.named_clusters import NamedCluster
from dlctl.local.file_lock import write_holder
from tests.support.command_line import Dlctl

MISSING = "dlctl: kubeconfig: /nowhere: the file does not exist; set --kubeconfig, or KUBECONFIG"


def test_directory_is_no_kubeconfig(dlctl: Dlctl, tmp_path: Path) -> None:
    done = dlctl("get", "--kubeconfig", str(tmp_path))
    assert done.code == 2
    assert done.err.startswith(f"dlctl: kubeconfig: {tmp_path}: it is not a file; set --kubeconfig")


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
