"""Reading the output of containers."""

from pathlib import Path

import pytest

from dlctl.api.meta import ObjectKey
from dlctl.local.node.containers.logs import LogArchive, LogFiles, LogOptions, read


async def text(path: Path, query: LogOptions) -> str:
    return b"".join([chunk async for chunk in read(path, query, lambda: True)]).decode()


@pytest.mark.parametrize(
    ("content", "lines", "expected"),
    [
        pytest.param("a\nb\nc\n", 2, "b\nc\n", id="last lines"),
        pytest.param("a\nb\nc", 1, "c", id="unfinished line"),
        pytest.param("a\nb\n", 5, "a\nb\n", id="more than there are"),
        pytest.param("a\n", 0, "", id="none"),
        pytest.param("x" * 70_000 + "\n" + "y" * 70_000 + "\n", 1, "y" * 70_000 + "\n", id="long"),
        pytest.param("", 3, "", id="empty"),
        pytest.param("\n" * 200_000, 150_000, "\n" * 150_000, id="many"),
    ],
)
async def test_tail_starts_at_the_beginning_of_a_line(
    content: str, lines: int, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "0.log"
    path.write_text(content)
    assert await text(path, LogOptions(tail_lines=lines)) == expected


async def test_output_is_cut_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("abcdef")
    assert await text(path, LogOptions(limit_bytes=4)) == "abcd"


async def test_missing_log_is_empty(tmp_path: Path) -> None:
    assert await text(tmp_path / "no.log", LogOptions()) == ""


async def test_followed_log_ends_with_its_container(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("first\n")
    ended: list[bool] = []
    chunks = []
    async for chunk in read(path, LogOptions(follow=True), lambda: bool(ended)):
        chunks.append(chunk)
        if not ended:
            path.write_text("first\nlast\n")
            ended.append(True)
    assert b"".join(chunks) == b"first\nlast\n"


def test_logs_of_the_last_two_runs_are_kept(tmp_path: Path) -> None:
    files = LogFiles(tmp_path)
    for start in range(4):
        files.rotate(start)
        files.path(start).write_text(str(start))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.log", "3.log"]


def _start(archive: LogArchive, node: Path, pod: ObjectKey, number: int, text: str) -> None:
    log = node / f"{pod.namespace}-{number}.log"
    archive.keep(log, pod, "main")
    # A second preparation of the same start changes nothing.
    archive.keep(log, pod, "main")
    log.write_text(text)


def test_archive_keeps_each_start_in_its_own_file(tmp_path: Path) -> None:
    archive = LogArchive(tmp_path / "kept")
    node = tmp_path / "node"
    node.mkdir()
    for number in range(3):
        _start(archive, node, ObjectKey("default", "sum-master-0"), number, f"start {number}\n")
    _start(archive, node, ObjectKey("lab", "sum-master-0"), 0, "another namespace\n")
    found = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.glob("kept/*/*")}
    assert found == {
        "kept/sum-master-0/main-0.log": "start 0\n",
        "kept/sum-master-0/main-1.log": "start 1\n",
        "kept/sum-master-0/main-2.log": "start 2\n",
        "kept/lab_sum-master-0/main-0.log": "another namespace\n",
    }


def test_archive_replaces_files_of_an_earlier_cluster_and_no_others(tmp_path: Path) -> None:
    kept, node = tmp_path / "kept" / "sum-master-0", tmp_path / "node"
    node.mkdir()
    kept.mkdir(parents=True)
    for name in ("main-0.log", "main-7.log", "main-a-0.log", "notes.txt"):
        (kept / name).write_text("old")
    _start(LogArchive(kept.parent), node, ObjectKey("default", "sum-master-0"), 0, "new")
    assert {path.name: path.read_text() for path in kept.iterdir()} == {
        "main-0.log": "new",
        "main-a-0.log": "old",
        "notes.txt": "old",
    }
