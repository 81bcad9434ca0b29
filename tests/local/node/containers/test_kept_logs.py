"""What remains of a pod on the node's disk after its deletion."""

from pathlib import Path

import pytest

from dlctl.api.meta import UID
from dlctl.local.node.containers.launch import PodPaths


@pytest.fixture
def paths(tmp_path: Path) -> PodPaths:
    paths = PodPaths.of(tmp_path, UID("uid-1"))
    paths.make()
    (paths.volumes / "secret").write_text("a secret of the pod")
    paths.hosts.write_text("127.0.0.1 localhost\n")
    paths.logs("main").mkdir(parents=True)
    (paths.logs("main") / "0.log").write_text("last words\n")
    return paths


def test_nothing_is_left_of_a_pod(paths: PodPaths) -> None:
    paths.remove(keep_logs=False)
    assert not paths.root.exists()


def test_kept_logs_are_all_that_is_left(paths: PodPaths) -> None:
    paths.remove(keep_logs=True)
    files = [path for path in paths.root.rglob("*") if path.is_file()]
    assert files == [paths.logs("main") / "0.log"]


@pytest.mark.parametrize("keep_logs", [True, False])
def test_pod_that_was_never_set_up_has_nothing_to_remove(tmp_path: Path, keep_logs: bool) -> None:
    PodPaths.of(tmp_path, UID("uid-2")).remove(keep_logs=keep_logs)
    assert list(tmp_path.iterdir()) == []
