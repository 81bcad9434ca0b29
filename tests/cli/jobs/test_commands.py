"""The commands on jobs, one after the other, in a cluster that has a few."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.builders import bare_job
from tests.cli.completions import completed
from tests.cli.jobs.live_jobs import command_job, create_event, create_jobs, until
from tests.support.command_line import Dlctl, Finished

pytestmark = pytest.mark.slow

In = Callable[..., Finished]


@pytest.fixture
def in_cluster(dlctl: Dlctl, kubeconfig: Path) -> In:
    """Run a command in the namespace ``default`` of the cluster."""
    return lambda name, *more: dlctl(name, "--kubeconfig", str(kubeconfig), *more)


@pytest.fixture(scope="module")
def jobs(kubeconfig: Path) -> Sequence[str]:
    fails = "import sys; print('\\x1b[2Jthe data set is missing'); sys.exit(1)"
    script = "import os; print('rank', os.environ['RANK'])\nimport time; time.sleep(60)"
    bare = bare_job("TFJob", "bare", ps=1, worker=1)
    bare["metadata"] = {"name": "bare"}
    unprepared = command_job("PyTorchJob", "unprepared", script, Master=1)
    template = unprepared["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    (container,) = template["spec"]["containers"]
    fetch = {**container, "name": "fetch", "command": ["python3", "-uc", fails]}
    template["spec"]["initContainers"] = [fetch]
    create_jobs(
        kubeconfig,
        command_job("PyTorchJob", "sum", script, Master=1, Worker=1),
        command_job("PyTorchJob", "broken", fails, Master=1),
        command_job("TFJob", "sum", script.replace("RANK", "HOME"), Chief=1),
        bare,
        unprepared,
    )
    names = ["pytorchjob/sum", "pytorchjob/broken", "pytorchjob/unprepared"]
    return [*names, "tfjob/sum", "tfjob/bare"]


def test_get_lists_jobs_of_all_kinds(in_cluster: In, jobs: Sequence[str]) -> None:
    done = until(lambda: in_cluster("get"), out="Failed")
    header, *rows = done.out.splitlines()
    assert header.split() == ["NAME", "STATE", "REPLICAS", "DURATION", "AGE"]
    assert {row.split()[0] for row in rows} == set(jobs)
    assert [line.split()[0] for line in in_cluster("get", "-A").out.splitlines()[1:]] == [
        "default"
    ] * len(jobs)


def test_get_prints_whole_objects(in_cluster: In, jobs: Sequence[str]) -> None:
    one = json.loads(in_cluster("get", "pytorch/sum", "-o", "json").out)
    assert (one["apiVersion"], one["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    several = yaml.safe_load(in_cluster("get", "pytorchjobs", "-o", "yaml").out)
    assert [each["metadata"]["name"] for each in several["items"]] == [
        "broken",
        "sum",
        "unprepared",
    ]
    names = in_cluster("get", "pytorchjob", "-o", "name").out.splitlines()
    assert names == [f"pytorchjob.kubeflow.org/{name}" for name in ("broken", "sum", "unprepared")]


def test_name_of_two_jobs_asks_for_the_kind(in_cluster: In, jobs: Sequence[str]) -> None:
    done = in_cluster("why", "sum")
    assert done.code == 2
    assert "sum is the name of tfjob/sum and pytorchjob/sum: write KIND/NAME" in done.err


def test_missing_job_exits_1_and_unknown_kind_2(in_cluster: In, jobs: Sequence[str]) -> None:
    missing, unknown = in_cluster("delete", "nothing"), in_cluster("logs", "pytorchjbo/sum")
    assert (missing.code, unknown.code) == (1, 2)
    assert "namespace default has no job nothing" in missing.err
    misspelt = in_cluster("get", "pytorhcjob")
    assert "no job pytorhcjob; did you mean the kind pytorchjob, as in" in misspelt.err
    assert "did you mean pytorchjob?" in unknown.err
    near = in_cluster("why", "brokn")
    assert "has no job brokn; did you mean pytorchjob/broken?" in near.err
    of_pod = in_cluster("logs", "broken-master-0")
    assert of_pod.err.endswith("; did you mean the job of this pod, pytorchjob/broken?\n")
    pod = in_cluster("describe", "pod", "broken-master-0")
    assert (pod.code, pod.out) == (2, "")
    assert "pod is no kind of job that dlctl serves: use any of tfjob, pytorchjob" in pod.err


def test_why_shows_the_output_of_the_first_failure(in_cluster: In, jobs: Sequence[str]) -> None:
    done = until(lambda: in_cluster("why", "broken"), out="Failed, ran")
    assert "First cause:\n  master-0 (rank 0, node " in done.out
    assert "    | the data set is missing\n" in done.out
    described = in_cluster("describe", "pytorchjob", "broken").out
    assert "master-0   Failed" in described
    assert "Replicas:   master (1)\n" in described


def test_output_of_a_failed_init_container_is_pointed_to(
    in_cluster: In, jobs: Sequence[str]
) -> None:
    command = "dlctl logs pytorchjob/unprepared -n default --replica master-0 -c fetch"
    done = until(lambda: in_cluster("why", "unprepared"), out="Failed, ran")
    assert f"More:\n  {command}\n" in done.out
    silent = in_cluster("logs", "unprepared")
    assert (silent.code, silent.out) == (1, "")
    assert (
        f"has not started: Failed; for the output of its init container: `{command}`" in silent.err
    )
    assert "the data set is missing" in in_cluster(*command.split()[1:]).out


def test_why_leaves_out_control_sequences_of_events(
    in_cluster: In, jobs: Sequence[str], kubeconfig: Path
) -> None:
    create_event(kubeconfig, "broken", "\x1b]0;title\x07\x1b[31mred\nMore:\n  dlctl delete broken")
    for command in ("why", "describe"):
        out = in_cluster(command, "broken").out
        assert "Forged: red More:   dlctl delete broken" in out
        assert "\x1b" not in out


def test_logs_of_several_replicas_are_prefixed(in_cluster: In, jobs: Sequence[str]) -> None:
    # Both run at the same time.
    both = "master-0 | rank 0\nworker-0 | rank 1\n"
    assert until(lambda: in_cluster("logs", "pytorchjob/sum"), out=both).out == both
    one = in_cluster("logs", "pytorchjob/sum", "--replica", "worker-0")
    assert one.out == "rank 1\n"


def test_last_lines_of_a_log_are_counted_as_by_kubectl(in_cluster: In, jobs: Sequence[str]) -> None:
    shown = partial(in_cluster, "logs", "pytorchjob/sum", "--replica", "worker-0", "--tail")
    assert until(lambda: shown("-1"), out="rank 1").out == "rank 1\n"
    assert shown("0").out == ""
    wrong = shown("-2")
    assert (wrong.code, wrong.out) == (2, "")
    assert "argument --tail: '-2' is no number of lines: write 20, or -1 for all" in wrong.err


def test_replica_that_does_not_exist_exits_2(in_cluster: In, jobs: Sequence[str]) -> None:
    done = in_cluster("logs", "pytorchjob/sum", "--replica", "worker-7")
    assert done.code == 2
    assert "pytorchjob/sum has the replicas master (1), worker (1)" in done.err


def test_container_that_does_not_exist_exits_1(in_cluster: In, jobs: Sequence[str]) -> None:
    until(lambda: in_cluster("get", "pytorchjob/broken"), out="Failed")
    done = in_cluster("logs", "broken", "-c", "sidecar")
    assert (done.code, done.out) == (1, "")
    assert "container sidecar is not valid for pod broken-master-0" in done.err
    # There is none that could have written anything.
    assert done.err.count("\n") == 1


def test_rejected_credentials_are_named(
    dlctl: Dlctl, kubeconfig: Path, jobs: Sequence[str], tmp_path: Path
) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "another"}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    done = dlctl("get", "--kubeconfig", str(path))
    assert (done.code, done.out) == (1, "")
    assert "does not accept the credentials of the kubeconfig (Unauthorized): log in" in done.err


def test_form_without_suspension_says_so(in_cluster: In, jobs: Sequence[str]) -> None:
    done = in_cluster("suspend", "bare")
    assert done.code == 2
    assert "mpba.fbk.eu/v1 has no field for it" in done.err


def test_job_is_suspended_resumed_and_deleted(in_cluster: In, jobs: Sequence[str]) -> None:
    name = "pytorchjob/sum"
    assert in_cluster("suspend", "pytorchjob", "sum").out == f"{name} suspended\n"
    until(lambda: in_cluster("get", name), out="Suspended")
    assert "is suspended already" in in_cluster("suspend", name).out
    assert f"`dlctl resume {name}`" in in_cluster("why", name).out
    assert in_cluster("resume", name).out == f"{name} resumed\n"
    until(lambda: in_cluster("get", name), out="Running")
    deleted = in_cluster("delete", name)
    assert deleted.out == f"{name} deleted\n", deleted
    assert in_cluster("get", name).code == 1


def test_deletion_says_which_pods_it_waits_for(in_cluster: In, kubeconfig: Path) -> None:
    stays = """import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready")
time.sleep(60)"""
    job = command_job("PyTorchJob", "stays", stays, Master=1)
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["spec"]["terminationGracePeriodSeconds"] = 3
    create_jobs(kubeconfig, job)
    until(lambda: in_cluster("logs", "stays"), out="ready")
    # Twice the same job.
    done = in_cluster("delete", "stays", "pytorchjob/stays")
    assert (done.code, done.out) == (0, "pytorchjob/stays deleted\n")
    assert done.err == (
        "pytorchjob/stays is being deleted: waiting for its pods to end "
        "(stays-master-0); --no-wait does not wait for them\n"
    )


def test_names_of_jobs_are_completed(kubeconfig: Path, jobs: Sequence[str]) -> None:
    words = completed("dlctl why b", KUBECONFIG=str(kubeconfig))
    assert words == ["bare", "broken"]
    chosen = completed(f"dlctl describe --kubeconfig {kubeconfig} tfjob/b")
    assert chosen == ["tfjob/bare"]


def test_get_nodes_lists_the_node_of_the_cluster(in_cluster: In, jobs: Sequence[str]) -> None:
    header, row = in_cluster("get", "nodes").out.splitlines()
    assert header.split()[:2] == ["NODE", "SIGNALS"]
    assert row.split()[-1] == "no"
    assert in_cluster("get", "nodes", "node-a").code == 2
