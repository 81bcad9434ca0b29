"""Jobs made from a script."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dlctl.local.node.containers.env import expand
from tests.docs.pages import ROOT
from tests.support.command_line import Dlctl

SCRIPT = """
import os, sys
print("process", os.environ["PROCESS_ID"], *sys.argv[1:], flush=True)
print("in", os.getcwd(), "with", sys.prefix, os.environ["TOKEN"])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "Train_DDP.py"
    path.write_text(SCRIPT)
    return path


def dry_run(dlctl: Dlctl, *arguments: str) -> tuple[str, dict[str, Any]]:
    """Return the printed manifest, as text and decoded."""
    done = dlctl("run", "--dry-run", *arguments)
    assert done.code == 0, done.err
    return done.out, yaml.safe_load(done.out)


def container(job: dict[str, Any], specs: str, type_: str) -> dict[str, Any]:
    (only,) = job["spec"][specs][type_]["template"]["spec"]["containers"]
    return dict(only)


def test_script_runs_in_all_replicas_in_its_directory(
    dlctl: Dlctl, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("TOKEN", "$(HOME)")
    arguments = ("--kind", "jax", "--workers", "2", "-e", "TOKEN", "--timeout", "30")
    done = dlctl("run", *arguments, str(script), "--", "--lr", "0.1")
    assert done.code == 0, done.err
    assert "jaxjob default/train-ddp: Done, Succeeded" in done.out
    for line in ("process 0 --lr 0.1", "process 1 --lr 0.1"):
        assert line in done.out
    assert done.out.count(f"in {script.parent} with {sys.prefix} $(HOME)") == 2


def test_script_runs_beside_files_named_as_modules_of_python(
    dlctl: Dlctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("types", "random", "socket"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('a script of the user')")
    script = tmp_path / "train"
    script.write_text("#!/bin/sh\necho trains\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    # As pytest and notebooks do with the directory of their file.
    monkeypatch.syspath_prepend(tmp_path)
    done = dlctl("run", "--kind", "jax", "--timeout", "30", str(script))
    assert done.code == 0, done.err
    assert "worker-0 | trains" in done.out


def test_script_whose_name_begins_with_a_dash_is_no_flag_of_python(
    dlctl: Dlctl, tmp_path: Path
) -> None:
    (tmp_path / "-v2.py").touch()
    _, job = dry_run(dlctl, "--kind", "jax", f"{tmp_path}/-v2.py")
    assert container(job, "jaxReplicaSpecs", "Worker")["command"] == ["python3", "./-v2.py"]


@pytest.mark.parametrize("word", ["$(HOME)", "$$(HOME)", "$$$(HOME)", "$$", "$$$", "$HOME", "5$"])
def test_dollars_reach_the_script_as_they_are(dlctl: Dlctl, script: Path, word: str) -> None:
    _, job = dry_run(dlctl, "--kind", "jax", "-e", f"WORD={word}", str(script), "--", word)
    worker = container(job, "jaxReplicaSpecs", "Worker")
    values = {each["name"]: each.get("value", "") for each in worker["env"]}
    assert expand(worker["command"][-1], {"HOME": "/root"}) == word
    assert expand(values["WORD"], {"HOME": "/root"}) == word


def test_command_in_the_header_is_quoted_for_the_shell(dlctl: Dlctl, tmp_path: Path) -> None:
    script = tmp_path / "my run's" / "train.py"
    script.parent.mkdir()
    script.touch()
    text, _ = dry_run(dlctl, "--kind", "jax", str(script))
    (line,) = [line for line in text.splitlines() if "dlctl run FILE" in line]
    words = shlex.split(line.removeprefix("#"))
    assert words[words.index("--workdir") + 1] == str(script.parent)


def test_printed_manifest_says_what_to_change_for_a_cluster(dlctl: Dlctl, script: Path) -> None:
    text, job = dry_run(dlctl, str(script), "--kind", "PyTorchJob", "--workers", "3", "--", "a b")
    assert "# CHANGE: an image with your packages" in text
    assert f"--workdir {script.parent}" in text
    assert job["metadata"] == {"name": "train-ddp"}
    assert job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 2
    command = container(job, "pytorchReplicaSpecs", "Worker")["command"]
    assert command == ["python3", "Train_DDP.py", "a b"]
    # As under torchrun: one process in each pod.
    env = container(job, "pytorchReplicaSpecs", "Master")["env"]
    assert {"name": "LOCAL_RANK", "value": "0"} in env


def test_header_counts_one_worker_in_the_singular(dlctl: Dlctl, script: Path) -> None:
    text, _ = dry_run(dlctl, str(script), "--kind", "pytorch", "--workers", "1")
    assert text.startswith("# PyTorchJob with 1 worker: the first is the master, with rank 0.")


def test_processes_that_train_get_the_gpus(dlctl: Dlctl, script: Path) -> None:
    _, job = dry_run(dlctl, "--kind", "mpi", "--gpus", "2", str(script))
    worker = container(job, "mpiReplicaSpecs", "Worker")
    assert worker["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    assert "resources" not in container(job, "mpiReplicaSpecs", "Launcher")
    _, job = dry_run(dlctl, "--kind", "tf", "--gpus", "amd.com/gpu=1", str(script))
    limits = container(job, "tfReplicaSpecs", "Worker")["resources"]["limits"]
    assert limits == {"amd.com/gpu": 1}


def test_launcher_starts_the_script_in_the_workers(dlctl: Dlctl, script: Path) -> None:
    chosen = ("--workers", "4", "--container-image", "my/mpi:1", "--name", "sum")
    _, job = dry_run(dlctl, "--kind", "mpi", *chosen, str(script))
    launcher = container(job, "mpiReplicaSpecs", "Launcher")
    assert launcher["command"][-4:] == ["-np", "4", "python3", "Train_DDP.py"]
    assert "command" not in container(job, "mpiReplicaSpecs", "Worker")
    assert launcher["image"] == "my/mpi:1"
    assert job["metadata"]["name"] == "sum"


def test_module_starts_in_the_current_directory(
    dlctl: Dlctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Not the module, but a program that is beside it.
    Path("my.train").touch()
    text, job = dry_run(dlctl, "--kind", "jax", "-m", "my.train", "--", "--lr", "1")
    command = container(job, "jaxReplicaSpecs", "Worker")["command"]
    assert command == ["python3", "-m", "my.train", "--lr", "1"]
    assert f"--workdir {tmp_path} " in text
    assert job["metadata"]["name"] == "my-train"


def test_active_environment_is_used_unless_another_is_named(
    dlctl: Dlctl, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("active", "named"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python3").touch()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    text, _ = dry_run(dlctl, "--kind", "tf", str(script))
    assert f"={tmp_path}/active\n" in text
    text, _ = dry_run(dlctl, "--kind", "tf", "--python", str(tmp_path / "named"), str(script))
    assert f"={tmp_path}/named\n" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["train.py"], "such as --kind pytorch", id="no kind"),
        pytest.param(["-m", "my.train"], "such as --kind pytorch", id="module without kind"),
        pytest.param([], "name a manifest, or a script with --kind", id="nothing"),
        pytest.param(["job.yaml", "--workers", "5"], "--workers is for scripts", id="manifest"),
        pytest.param(["job.yaml", "-e", "A=B"], "--env is for scripts", id="manifest, env"),
        pytest.param(["job.yaml", "--", "--lr", "1"], "-- are for scripts", id="manifest, words"),
        pytest.param(["--kind", "jax"], "name a script, or a module", id="kind alone"),
        pytest.param(["--kind", "jax", "/nowhere.py"], "no script /nowhere.py", id="no script"),
        pytest.param(["--kind", "pytroch", "x.py"], "did you mean pytorch?", id="kind"),
        pytest.param(["--kind", "jax", "--workers", "0", "x.py"], "use 1 or more", id="workers"),
        pytest.param(["--kind", "jax", "x.py", "-n", "4"], "use --workers 4", id="-n"),
        pytest.param(["--kind", "jax", "x.py", "-n4"], "use --workers 4", id="-n in one word"),
        pytest.param(["--kind", "mpi", "-np", "4", "x.py"], "use --workers 4", id="-np"),
        pytest.param(["--kind", "mpi", "-np4", "x.py"], "use --workers 4", id="-np in one word"),
        pytest.param(["--kind", "mpi", "-np=4", "x.py"], "use --workers 4", id="-np with ="),
        pytest.param(
            ["--kind", "jax", str(ROOT / "hatch_build.py"), "-e", "=1"],
            "--env =1: write NAME, or NAME=VALUE",
            id="variable without a name",
        ),
        pytest.param(
            ["--kind", "jax", "/dev"], "no script /dev: it is a directory", id="directory"
        ),
        pytest.param(
            ["--kind", "jax", "-m", "my/train.py"],
            "write -m my.train, or the file",
            id="path of module",
        ),
        pytest.param(
            ["--kind", "jax", "train.py", "-m", "my.train"],
            "train.py: -m runs a module and no FILE: leave it out, or write it after --",
            id="file and module",
        ),
        pytest.param(["--kind", "jax", str(ROOT / "LICENSE")], "`chmod +x", id="not executable"),
        pytest.param(
            ["--kind", "jax", str(ROOT / "docs/get-started/notebook.ipynb")],
            "jupyter nbconvert --to script",
            id="notebook",
        ),
        pytest.param(
            ["--kind", "jax", str(ROOT / "mkdocs.yml")],
            "a manifest runs without --kind",
            id="kind and manifest",
        ),
        pytest.param(["--kind", "jax", "x.py", "--lr", "1"], "follow --", id="arguments"),
        pytest.param(
            ["--kind", "jax", "-m", "x", "--python", "/nowhere"], "no bin/python3", id="python"
        ),
        pytest.param(["--kind", "jax", "-m", "x", "--gpus", "all"], "amd.com/gpu=1", id="GPUs"),
        pytest.param(["--kind", "jax", "-m", "x", "-e", "NO_SUCH"], "NO_SUCH=VALUE", id="variable"),
        pytest.param(["--dry-run", "job.yaml"], "dlctl render", id="dry run of a manifest"),
    ],
)
def test_impossible_arguments_exit_2_with_the_fix(
    dlctl: Dlctl, arguments: list[str], message: str
) -> None:
    done = dlctl("run", *arguments)
    assert done.code == 2
    assert message in done.err
