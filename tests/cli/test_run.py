"""Whole runs: an embedded cluster, a controller and processes, as users start them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.builders import mxjob
from tests.cli.terminal import run_in_terminal
from tests.mpi_v2beta1 import mpi_job
from tests.support.command_line import Dlctl, Finished, Written, script_job

GREET = """
import os
print("role", os.environ["DMLC_ROLE"])
"""


_NUMBERS: Final = re.compile(rb"worker-0 \| (\d{6}) ")
# The peak of a process counts that of the one which forked it, so this small one is in between.
_WITH_PEAK: Final = """
import pathlib, resource, subprocess, sys
subprocess.run(sys.argv[2:], check=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
pathlib.Path(sys.argv[1]).write_text(str(peak))
"""


def pytorch_job(script: str) -> dict[str, Any]:
    """Return a job of a master that is restarted in place."""
    container = {"name": "pytorch", "image": "python", "command": ["python3", "-c", script]}
    master = {"restartPolicy": "OnFailure", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "sum"},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }


def kept_log(done: Finished) -> Path:
    return Path(done.err.split("the controller's log: ")[1].strip())


def test_job_that_succeeds_exits_0_and_prints_its_status(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("run", written(script_job(GREET)), "--timeout", "20s", "-o", "yaml")
    assert done.code == 0, done.err
    assert "linear worker-0 | role worker" in done.err
    assert "mxjob default/linear: Done, Succeeded" in done.err
    assert re.search(r"^mxjob default/linear succeeded in \d+\.\d s$", done.err, re.MULTILINE)
    assert "\x1b" not in done.err
    job = yaml.safe_load(done.out)
    assert (job["kind"], job["metadata"]["name"]) == ("MXJob", "linear")
    assert job["status"]["state"] == "Succeeded"


def test_job_with_generate_name_is_followed_under_its_name(dlctl: Dlctl, written: Written) -> None:
    job = script_job(GREET)
    job["metadata"] = {"generateName": "linear-"}
    done = dlctl("run", written(job), "--timeout", "20")
    assert done.code == 0, done.err
    assert re.search("mxjob default/linear-[a-z0-9]{5}: Done, Succeeded", done.out)


def test_launcher_of_a_batch_job_is_followed(dlctl: Dlctl, written: Written) -> None:
    job = mpi_job(workers=1, worker=program("sleep", "60"), launcher=program("echo", "it ran"))
    del job["metadata"]["namespace"], job["metadata"]["uid"]
    done = dlctl("run", written(job), "--timeout", "30s")
    assert done.code == 0, done.err
    assert "pi launcher-0 | it ran" in done.out
    assert re.search(r"pi launcher-0: Succeeded, .*, pod pi-launcher-\w{5}", done.out)


def program(*command: str) -> dict[str, Any]:
    return {"containers": [{"name": "mpi", "image": "mpi", "command": list(command)}]}


def test_failed_job_exits_1_with_the_first_cause(dlctl: Dlctl, written: Written) -> None:
    script = """
        import os, sys, time
        if os.environ["HOSTNAME"].endswith("-1"):
            sys.exit("no such data set")
        time.sleep(60)
    """
    done = dlctl("run", written(script_job(script)), "--timeout", "20")
    assert done.code == 1
    assert re.search(
        r"mxjob default/linear failed after [\d.]+ s: "
        r"worker-1( \(rank \d\))?: exit code 1: general error \(probably user code\)\n",
        done.err,
    )
    assert "last lines of worker-1:\n  | no such data set\n" in done.err
    assert done.err.count("image python is not mapped") == 1
    log = kept_log(done)
    assert "controller started" in log.read_text()
    log.unlink()


def test_job_beyond_the_time_limit_exits_1_and_shows_its_state(
    dlctl: Dlctl, written: Written
) -> None:
    done = dlctl("run", written(script_job("import time; time.sleep(60)")), "--timeout", "1.5")
    kept_log(done).unlink()
    assert done.code == 1
    assert "timed out after 1.5 s" in done.err
    assert "mxjob default/linear has not finished" in done.err


def test_first_failure_ends_a_run_without_restarts(
    dlctl: Dlctl, written: Written, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    script = f"import sys; print('start', file=open('{starts}', 'a')); sys.exit('no data set')"
    job = pytorch_job(script)
    done = dlctl("run", written(job), "--max-restarts", "0")
    kept_log(done).unlink()
    assert done.code == 1
    assert starts.read_text() == "start\n"
    assert "(pod sum-master-0) was not restarted; exit code 1" in done.err
    assert "--max-restarts allows 0" in done.err
    assert "last lines of master-0:\n  | no data set\n" in done.err


def test_first_failure_of_a_launcher_ends_a_run_without_restarts(
    dlctl: Dlctl, written: Written, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    launcher = program("sh", "-c", f"echo start >> {starts}; exit 3")
    job = mpi_job(workers=1, worker=program("sleep", "60"), launcher=launcher)
    del job["metadata"]["namespace"], job["metadata"]["uid"]
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "OnFailure"
    done = dlctl("run", written(job), "--max-restarts", "0", "--timeout", "30s")
    kept_log(done).unlink()
    assert done.code == 1
    assert starts.read_text() == "start\n"
    assert "was not restarted; exit code 3" in done.err


def test_replica_that_never_started_is_named_beside_the_success(
    dlctl: Dlctl, written: Written
) -> None:
    job = script_job(GREET)
    scheduler = job["spec"]["replicaSpecs"][0]["template"]["spec"]
    scheduler["initContainers"] = [{"name": "wait", "image": "x", "command": ["sleep", "60"]}]
    done = dlctl("run", written(job), "--timeout", "20")
    assert done.code == 0, done.err
    assert "; scheduler-0 never started\n" in done.out


def test_logs_of_each_start_are_kept_also_of_a_success(
    dlctl: Dlctl, written: Written, tmp_path: Path
) -> None:
    kept = tmp_path / "logs"
    script = "import os; print('start'); os.path.exists('f') or os._exit(os.mkdir('f') or 1)"
    done = dlctl("run", written(pytorch_job(script)), "--logs", str(kept), "-q")
    assert done.code == 0, done.err
    assert " | " not in done.out
    assert f"the logs are in {kept}" in done.out
    for number in (0, 1):
        assert (kept / "sum-master-0" / f"pytorch-{number}.log").read_text() == "start\n"
    assert "controller started" in (kept / "controller.log").read_text()


def test_replica_that_the_job_does_not_have_exits_2(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("run", written(script_job("")), "--replica", "wroker-0")
    assert done.code == 2
    assert "--replica wroker-0: the job has scheduler-0, worker-0, worker-1" in done.err


def test_terminal_of_80_columns_shows_logs_above_the_table(written: Written) -> None:
    script = r"""
        import sys
        print("\N{EURO SIGN}", flush=True)
        sys.stdout.buffer.write(b"\x1b[2J\x1b[31mred\xff\n" + b"x" * 200 + b"\n")
        for percent in range(0, 101):
            print(f"\r{percent}%", end="", flush=True)
    """
    code, terminal = run_in_terminal("run", written(script_job(script)), columns=80)
    lines = [line for line in terminal.lines if line]
    assert code == 0, lines
    assert lines[0].startswith("network ")
    logs = [line for line in lines if "worker-0" in line and " | " in line]
    assert logs == [
        "worker-0    | \N{EURO SIGN}",
        "worker-0    | red\N{REPLACEMENT CHARACTER}",
        "worker-0    | " + "x" * 66,
        "worker-0    | 100%",
    ]
    assert [line.split()[0] for line in lines[-6:]] == [
        *("mxjob", "REPLICA", "worker-0", "scheduler-0", "worker-1", "mxjob")
    ]
    assert " POD " not in "\n".join(lines)


def test_40_mb_of_output_take_bounded_memory_and_reach_the_reader(
    written: Written, tmp_path: Path
) -> None:
    script = r"""
        import os, sys
        print("hello")
        for number in range(400_000 if os.environ["HOSTNAME"].endswith("-0") else 0):
            sys.stdout.buffer.write(b"%06d " % number + b"x" * 93 + b"\n")
    """
    command = [sys.executable, "-m", "dlctl", "run", written(script_job(script))]
    done = subprocess.run(
        [sys.executable, "-c", _WITH_PEAK, str(tmp_path / "peak"), *command, "--replica=worker-0"],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=True,
    )
    assert [int(number) for number in _NUMBERS.findall(done.stdout)] == list(range(400_000))
    # Of the others nothing was asked for.
    assert done.stdout.count(b" | hello") == 1
    # KiB; 40 MB held as lines would take more.
    assert int((tmp_path / "peak").read_text()) < 300_000


def test_files_of_a_config_map_reach_the_program(dlctl: Dlctl, written: Written) -> None:
    job = script_job("")
    for spec in job["spec"]["replicaSpecs"]:
        pod = spec["template"]["spec"]
        pod["volumes"] = [{"name": "script", "configMap": {"name": "script"}}]
        container = pod["containers"][0]
        container["command"] = ["python3", "/script/main.py"]
        container["volumeMounts"] = [{"name": "script", "mountPath": "/script"}]
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "script"},
        "data": {"main.py": "print('from the map')"},
    }
    done = dlctl("run", written(job, config), "--timeout", "20", "-n", "lab", "--network", "host")
    assert done.code == 0, done.err
    assert "linear worker-0 | from the map" in done.out
    assert "mxjob lab/linear: Done, Succeeded" in done.out


def test_waiting_reason_of_a_program_is_printed(written: Written, tmp_path: Path) -> None:
    job = script_job("")
    *_, worker = (spec["template"]["spec"] for spec in job["spec"]["replicaSpecs"])
    worker["volumes"] = [{"name": "script", "configMap": {"name": "script"}}]
    worker["volumes"][0]["configMap"]["items"] = [{"key": "no", "path": "main.py"}]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}}
    reason = 'key "no" not found in configmap "script"'
    with subprocess.Popen(
        [sys.executable, "-m", "dlctl", "run", written(job, config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        assert any(reason in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 128 + signal.SIGINT
    assert f"ContainerCreating: {reason}" in err


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        pytest.param(
            {**mxjob(), "metadata": {"name": "Upper_Case"}},
            "document 1, line 4: MXJob Upper_Case: metadata.name: is 'Upper_Case'",
            id="invalid name",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dat": {}},
            'document 1, line 1: ConfigMap c is rejected: .*unknown field "dat"',
            id="refused by the server",
        ),
    ],
)
def test_rejected_manifest_exits_2(
    dlctl: Dlctl, written: Written, manifest: object, message: str
) -> None:
    done = dlctl("run", written(manifest, script_job("")))
    assert done.code == 2
    assert re.search(message, done.err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--image", "mxnet"], "write NAME=PREFIX", id="no prefix"),
        pytest.param(["--image", "mxnet=/nowhere"], "/nowhere does not exist", id="no such place"),
    ],
)
def test_invalid_image_mapping_exits_2(dlctl: Dlctl, arguments: list[str], message: str) -> None:
    done = dlctl("run", "job.yaml", *arguments)
    assert done.code == 2
    assert message in done.err


def test_image_mapping_that_no_container_uses_exits_2(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("run", written(script_job("")), "--image", "torch=/usr")
    assert done.code == 2
    assert "--image torch=/usr: no container uses this image" in done.err
    assert "the manifests name python" in done.err


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "", "1d", "1s2m"])
def test_invalid_time_limit_exits_2(dlctl: Dlctl, written: Written, limit: str) -> None:
    done = dlctl("run", written(mxjob()), "--timeout", limit)
    assert done.code == 2
    assert "--timeout" in done.err


def test_svg_that_has_no_place_exits_2(dlctl: Dlctl, written: Written, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "run.svg"
    done = dlctl("run", written(script_job("")), "--record", str(path))
    assert (done.code, done.err) == (
        2,
        f"dlctl: --record {path}: name a file in a directory that exists\n",
    )


def test_svg_of_the_last_screen_loads_nothing(
    dlctl: Dlctl, written: Written, tmp_path: Path
) -> None:
    picture = tmp_path / "run.svg"
    done = dlctl("run", written(script_job(GREET)), "--record", str(picture))
    assert done.code == 0, done.err
    svg = picture.read_text()
    assert "worker-1" in svg
    assert "font-face" not in svg
    assert str(tmp_path) not in svg
