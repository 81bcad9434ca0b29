"""Files that are no manifests as they are: the message has the way to read them."""

import io
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Dlctl, Written, script_job

TYPED = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n"
UNTYPED = "resources: [a.yaml]\n"


@pytest.mark.parametrize("command", ["run", "render"])
@pytest.mark.parametrize("content", [TYPED, UNTYPED], ids=["typed", "untyped"])
@pytest.mark.parametrize("file", ["", "kustomization.yaml"], ids=["directory", "file"])
def test_kustomization_has_to_be_built(
    dlctl: Dlctl, tmp_path: Path, command: str, content: str, file: str
) -> None:
    directory = tmp_path / "my job"
    directory.mkdir()
    (directory / "kustomization.yaml").write_text(content)
    done = dlctl(command, str(directory / file))
    assert (done.code, done.out) == (2, "")
    assert f"build it with `kubectl kustomize '{directory}'`" in done.err


def test_files_of_a_directory_have_to_be_named(dlctl: Dlctl, tmp_path: Path) -> None:
    done = dlctl("check", str(tmp_path))
    assert done.code == 2
    assert (
        done.err == f"dlctl: {tmp_path} is a directory: name its files, such as {tmp_path}/*.yaml\n"
    )


@pytest.mark.parametrize("command", ["run", "check", "render"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.py", "print(1)\n"),
        ("a b.sh", "#!/bin/sh\n"),
        ("a.sh", "#!/bin/sh\necho one two\n"),
        ("b.sh", "#!/bin/sh\nif true; then\n  a: {\nfi\n"),
        ("train", "\x7fELF"),
    ],
)
def test_program_is_no_manifest(
    dlctl: Dlctl, tmp_path: Path, command: str, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    done = dlctl(command, str(path))
    assert (done.code, done.out) == (2, "")
    assert f"{path} is a program: " in done.err
    assert "--kind pytorch" in done.err


@pytest.mark.parametrize("shebang", ["#!/usr/bin/env -S dlctl run", "#!/usr/bin/less"])
def test_manifest_may_be_executable(dlctl: Dlctl, written: Written, shebang: str) -> None:
    path = Path(written(script_job("exit 0")))
    path.write_text(f"{shebang}\n{path.read_text()}")
    done = dlctl("check", str(path))
    assert done.code == 0, done.err


def test_mistake_in_an_executable_manifest_is_named(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job"
    path.write_text("#!/usr/bin/env -S dlctl run\nkind: {\n")
    done = dlctl("check", str(path))
    assert done.code == 2
    assert f"{path} is not YAML: line " in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#!/bin/sh\nkind: {\n", "- is not YAML: line "),
        ("#!/bin/sh\necho a\n", "-, line 2: a document has no kind"),
    ],
)
def test_script_on_stdin_is_no_manifest(
    dlctl: Dlctl, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    done = dlctl("run", "-")
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("command", ["run", "render"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("# a comment\n", "there is no object in the manifests", id="empty"),
        pytest.param(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {name: sum}\n",
            "none of the manifests is a job of a kind that dlctl serves: Job sum (batch/v1)",
            id="another job",
        ),
        pytest.param(
            "".join(
                f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\n" for n in range(9)
            ),
            "dlctl serves: Pod p0 (v1), Pod p1 (v1), Pod p2 (v1) and 6 more",
            id="many",
        ),
    ],
)
def test_manifests_without_a_job_are_named(
    dlctl: Dlctl, tmp_path: Path, command: str, text: str, message: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    done = dlctl(command, str(path))
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "`dlctl new pytorch` prints a job" in done.err


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param("a: 1\nb: Übung\n".encode("latin-1"), 2, id="latin-1"),
        pytest.param("a: 1\n".encode("utf-16"), 1, id="utf-16"),
    ],
)
def test_line_that_is_not_utf8_is_named(
    dlctl: Dlctl, tmp_path: Path, content: bytes, line: int
) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(content)
    done = dlctl("check", str(path))
    assert done.code == 2
    assert done.err == f"dlctl: {path} is not UTF-8 (line {line}): save it in that encoding\n"


def test_files_of_windows_may_be_joined(dlctl: Dlctl, tmp_path: Path) -> None:
    mark = "\ufeff"
    path = tmp_path / "both.yaml"
    text = "".join(f"{mark}kind: ConfigMap\r\napiVersion: v1\r\n---\r\n" for _ in range(2))
    path.write_text(text + mark + "# the end", newline="")
    done = dlctl("check", str(path))
    assert (done.code, done.err) == (0, "")
    assert "document 2, line 4: ConfigMap" in done.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "- kind: Job\n", "a document is a list: separate its objects by ---, or make", id="YAML"
        ),
        pytest.param('[{"kind": "Job"}]', "a document is a list: make them the items", id="JSON"),
        pytest.param(
            '{"kind": "Job", "kind": "Job"}',
            "kind is set twice: give each object braces of its own",
            id="two objects in JSON",
        ),
    ],
)
def test_document_that_is_no_object_names_the_form_of_one(
    dlctl: Dlctl, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(text)
    done = dlctl("check", str(path))
    assert done.code == 2
    assert f"{path}, line 1: {message}" in done.err


def test_number_that_json_lacks_is_named_with_its_line(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("kind: PyTorchJob\r\nspec:\r\n  replicas: .nan\r\n")
    done = dlctl("check", str(path))
    assert done.code == 2
    assert f"dlctl: {path}: line 3, column 13: JSON has no number .nan: write" in done.err


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz"])
def test_archive_is_to_be_unpacked(dlctl: Dlctl, tmp_path: Path, suffix: str) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/job.yaml").write_text("kind: PyTorchJob\n")
    format_ = {".zip": "zip", ".tar": "tar", ".tar.gz": "gztar"}[suffix]
    path = shutil.make_archive(str(tmp_path / "all"), format_, tmp_path / "jobs")
    done = dlctl("check", path)
    assert done.code == 2
    assert done.err == (
        f"dlctl: {path} is not text, as a manifest in YAML or JSON is: unpack an archive first\n"
    )


def test_huge_file_is_not_read_to_its_end(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    done = dlctl("check", str(path))
    assert (done.code, done.out) == (2, "")
    assert done.err == f"dlctl: {path} is larger than 128 MiB, and so no manifest\n"
