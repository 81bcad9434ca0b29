"""Own code, data and results in the pods of a run."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from dlctl.cli.embedded.directory_options import (
    add_directory_arguments,
    deleted_claims_line,
    parse_directories,
)
from dlctl.errors import ConfigError
from dlctl.local.node.directories import NodeDirectories
from dlctl.local.node.protocol import Mount
from tests.support.command_line import Dlctl, Written, script_job


def parsed(*arguments: str) -> NodeDirectories:
    parser = argparse.ArgumentParser()
    add_directory_arguments(parser)
    return parse_directories(parser.parse_args(arguments))


def training(*command: str) -> dict[str, Any]:
    """Return a job whose worker 0 runs the command beside a volume at /dlctl-test/results."""
    job = script_job("")
    pod = job["spec"]["replicaSpecs"][-1]["template"]["spec"]
    pod["volumes"] = [{"name": "results", "persistentVolumeClaim": {"claimName": "results"}}]
    mounts = [{"name": "results", "mountPath": "/dlctl-test/results"}]
    pod["containers"][0] |= {"command": list(command), "volumeMounts": mounts}
    return job


@pytest.mark.parametrize("network", ["auto", "host"])
def test_mounted_code_runs_and_its_results_stay(
    dlctl: Dlctl, written: Written, tmp_path: Path, network: str
) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "train.py").write_text(
        "import pathlib, sys\npathlib.Path(sys.argv[1], 'model').write_text('weights')\n"
    )
    (source / "data.txt").write_text("own data\n")
    command = "cat data.txt; python3 /dlctl-test/app/train.py /dlctl-test/results"
    done = dlctl(
        *("run", written(training("sh", "-c", command)), "--network", network, "--timeout", "20"),
        *("--mount", f"{source}:/dlctl-test/app:ro", "--workdir", str(source)),
        *("--volumes", str(tmp_path / "kept")),
    )
    assert done.code == 0, done.err
    assert "| own data" in done.out
    results = tmp_path / "kept" / "default" / "results"
    assert [path.name for path in results.iterdir()] == ["model"]
    assert ("/dlctl-test/app is not read-only" in done.err) == (network == "host")
    assert "deleted PersistentVolumeClaim" not in done.err


def test_claim_without_a_directory_is_named_when_it_is_deleted(
    dlctl: Dlctl, written: Written
) -> None:
    done = dlctl("run", written(training("true")), "--timeout", "20")
    assert done.code == 0, done.err
    assert "deleted PersistentVolumeClaim default/results: keep the files with --volumes" in (
        done.err
    )


def test_source_and_home_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "src").mkdir()
    expected = (Mount(str(tmp_path / "src"), "/opt/app"), Mount(str(tmp_path), "/data", True))
    assert parsed("--mount", "./src:/opt/app/", "--mount", "~:/data:ro").mounts == expected
    assert parsed("--workdir", "src").working_dir == str(tmp_path / "src")


def test_working_directory_may_be_in_a_mount(tmp_path: Path) -> None:
    directories = parsed("--mount", f"{tmp_path}:/dlctl-test", "--workdir", "/dlctl-test/sub")
    assert directories.working_dir == "/dlctl-test/sub"


def test_without_claims_there_is_nothing_to_name(tmp_path: Path) -> None:
    assert deleted_claims_line(tmp_path) == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--mount", "/tmp"], "write SOURCE:TARGET", id="no target"),
        pytest.param(["--mount", "/tmp:app"], "absolute TARGET", id="relative target"),
        pytest.param(["--mount", "/tmp:/app:rx"], "SOURCE:TARGET:ro", id="mode"),
        pytest.param(["--mount", "/nowhere:/app"], "/nowhere does not exist", id="source"),
        pytest.param(["--mount", "/tmp:/"], "over /", id="root"),
        pytest.param(["--workdir", "/nowhere"], "neither a directory", id="workdir"),
        pytest.param(["--volumes", "/dev/null/x"], "--volumes /dev/null/x", id="volumes"),
        pytest.param(["--volumes", __file__], "Not a directory", id="file for volumes"),
    ],
)
def test_impossible_directory_is_rejected(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parsed(*arguments)
