"""The clusters of ``import dlctl``, with and without an event loop."""

import asyncio
import datetime
import json
import math
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import dlctl
from dlctl.embedded_cluster import ManifestSource
from dlctl.errors import ConfigError
from tests.python_api.jobs import job

pytestmark = pytest.mark.slow


def test_importing_the_package_imports_nothing_else() -> None:
    script = "import sys, dlctl; print([m for m in sys.modules if m.startswith(('dlctl.', 'aio'))])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_result_has_the_status_and_the_output(cluster: dlctl.BlockingCluster) -> None:
    lines: list[tuple[str, str]] = []
    result = cluster.run(
        job("hello", "print('hello'); print('world')"),
        timeout_s=20,
        on_line=lambda replica, line: lines.append((replica, line)),
    )
    assert result.check() is result
    assert (result.kind, result.name, result.namespace) == ("PyTorchJob", "hello", "default")
    assert result.logs == {"master-0": "hello\nworld\n"}
    assert lines == [("master-0", "hello"), ("master-0", "world")]
    assert result.status["conditions"][-1]["type"] == "Succeeded"


def test_job_that_has_ended_is_run_again(cluster: dlctl.BlockingCluster) -> None:
    first = cluster.run(job("again", "raise SystemExit('no such data set')"), timeout_s=20)
    assert not first.succeeded
    with pytest.raises(dlctl.JobFailedError, match=r"(?s)exit code 1.*no such data set"):
        first.check()
    assert cluster.run(job("again", "print('better')"), timeout_s=20).succeeded


def test_job_that_takes_too_long_says_what_it_does(cluster: dlctl.BlockingCluster) -> None:
    slow = job("slow", "import time; print('begun'); time.sleep(60)")
    with pytest.raises(TimeoutError, match="has not finished: timed out after"):
        cluster.run(slow, timeout_s=3)
    assert cluster.run(job("slow", "print('faster')"), timeout_s=20).succeeded


def test_manifest_may_be_text_a_file_or_several(
    cluster: dlctl.BlockingCluster, tmp_path: Path
) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job("file", "pass")))
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    assert cluster.run([settings, path], timeout_s=20).name == "file"
    assert cluster.run(json.dumps(job("line", "pass")), timeout_s=20).name == "line"


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        pytest.param([], "found 0", id="none"),
        pytest.param([job("a", "pass"), job("b", "pass")], "found 2", id="two"),
        pytest.param("a: [\n", "not YAML", id="not YAML"),
        pytest.param("- a\n- b\n", "is a list", id="no object"),
        pytest.param(3, "3 is no manifest", id="a number"),
        pytest.param([b"kind: Job"], "b'kind: Job' is no manifest", id="bytes"),
        pytest.param(None, "None is no manifest", id="nothing"),
        pytest.param("", "the name of a file is empty", id="empty text"),
        pytest.param({}, "a manifest has no kind", id="empty dictionary"),
        pytest.param(
            {"kind": "PyTorchJob", "metadata": ["linear"]},
            "metadata must be a mapping",
            id="metadata that is a list",
        ),
        pytest.param(
            {"kind": "PyTorchJob", "spec": [{"replicas": object()}]},
            r"spec\[0\].replicas: is a builtins.object, which JSON does not have",
            id="a value that is none of JSON",
        ),
        pytest.param(
            {"kind": "PyTorchJob", "spec": [{"replicas": math.nan}]},
            r"spec\[0\].replicas: is nan, a number that JSON does not have",
            id="not a number",
        ),
    ],
)
def test_anything_but_one_job_is_an_error(
    cluster: dlctl.BlockingCluster, manifest: ManifestSource, error: str
) -> None:
    with pytest.raises(ConfigError, match=error):
        cluster.run(manifest)


def test_dictionary_may_have_what_programs_use_for_values_of_json(
    cluster: dlctl.BlockingCluster,
) -> None:
    manifest = job("values", "print(1)")
    containers = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    containers["containers"] = tuple(containers["containers"])
    manifest["metadata"]["creationTimestamp"] = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert cluster.run(manifest, timeout_s=20).succeeded


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"metadata": {}}, "metadata.name: is missing", id="no name"),
        pytest.param({"spec": {}}, "spec.pytorchReplicaSpecs: is missing", id="invalid"),
        pytest.param({"kind": "PytorchJob"}, "did you mean PyTorchJob?", id="kind"),
        pytest.param({"apiVersion": "kubeflow.org/v2"}, "it serves PyTorchJob in", id="version"),
        pytest.param({"apiVersion": None}, "apiVersion: is missing", id="no version"),
    ],
)
def test_invalid_job_is_an_error_of_its_manifest(
    cluster: dlctl.BlockingCluster, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster.run({**job("invalid", "pass"), **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"command": None}, 'the command of image "any" is unknown', id="command"),
        pytest.param({"volumeMounts": []}, "/missing does not exist", id="host path"),
    ],
)
def test_job_that_could_not_start_is_an_error(
    cluster: dlctl.BlockingCluster, changed: dict[str, Any], message: str
) -> None:
    manifest = job("hopeless", "pass")
    spec = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    spec["containers"][0] |= changed
    if "volumeMounts" in changed:
        spec["volumes"] = [{"name": "data", "hostPath": {"path": "/missing"}}]
    with pytest.raises(ConfigError, match=message):
        cluster.run(manifest, timeout_s=20)


def test_job_finds_what_an_earlier_run_has_created(cluster: dlctl.BlockingCluster) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "earlier"}}
    cluster.run([{**settings, "data": {"WORD": "here"}}, job("first", "pass")], timeout_s=20)
    second = job("second", "import os; print(os.environ['WORD'])")
    spec = second["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    spec["containers"][0]["envFrom"] = [{"configMapRef": {"name": "earlier"}}]
    assert cluster.run(second, timeout_s=20).logs == {"master-0": "here\n"}


def test_error_of_on_line_is_raised_as_it_is(cluster: dlctl.BlockingCluster) -> None:
    with pytest.raises(ZeroDivisionError):
        cluster.run(job("shown", "print(1)"), timeout_s=20, on_line=lambda *_: 1 // 0)  # type: ignore[arg-type]


def test_timeout_of_on_line_is_not_that_of_the_run(cluster: dlctl.BlockingCluster) -> None:
    def send(*_: object) -> None:
        raise TimeoutError("the chat does not answer")

    with pytest.raises(TimeoutError, match="the chat does not answer"):
        cluster.run(job("sent", "print(1)"), timeout_s=20, on_line=send)


def test_wrong_settings_are_errors(cluster: dlctl.BlockingCluster, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file: Not a directory"):
        dlctl.Cluster(volumes=tmp_path / "file")
    with pytest.raises(ConfigError, match="choose one of auto, isolated, host"):
        dlctl.Cluster(network="hosts")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"images \['a'\]: give a dictionary"):
        dlctl.Cluster(images=["a"])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="image a: 3 is no path"):
        dlctl.Cluster(images={"a": 3})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="volumes: 3 is no path"):
        dlctl.Cluster(volumes=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"max_restarts": -1}, "max_restarts -1: allow 0 or more", id="negative"),
        pytest.param({"max_restarts": "3"}, "max_restarts '3': allow 0 or more", id="text"),
        pytest.param({"max_restarts": 1.5}, "max_restarts 1.5: allow 0 or more", id="fraction"),
        pytest.param({"timeout_s": "3"}, "timeout_s '3': allow a number", id="seconds in text"),
        pytest.param({"timeout_s": -1}, "timeout_s -1: allow a number", id="negative seconds"),
        pytest.param({"on_line": "x"}, "on_line 'x': give a function", id="no function"),
    ],
)
def test_wrong_options_of_a_run_are_errors(
    cluster: dlctl.BlockingCluster, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster.run(job("a", "pass"), **options)


def test_empty_namespace_is_the_default_one(cluster: dlctl.BlockingCluster) -> None:
    assert cluster.run(job("unnamed", "pass"), namespace="", timeout_s=20).namespace == "default"


def test_job_that_waits_says_why_at_once_and_in_the_first_line_of_its_timeout(
    cluster: dlctl.BlockingCluster, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = job("waits", "pass")
    spec = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    spec["containers"][0]["envFrom"] = [{"configMapRef": {"name": "missing"}}]
    with pytest.raises(TimeoutError) as raised:
        cluster.run(manifest, timeout_s=4)
    cause = 'configmap "missing" not found'
    assert cause in str(raised.value).splitlines()[0]
    assert str(raised.value).count(cause) == 1
    logged = [record.getMessage() for record in caplog.records if cause in record.getMessage()]
    assert len(logged) == 1
    assert logged[0].startswith("pytorchjob default/waits: master-0 waits: ")


async def test_cluster_runs_in_the_callers_loop() -> None:
    async with dlctl.Cluster(network="host") as cluster:
        assert cluster.url.startswith("https://127.0.0.1:")
        both = await asyncio.gather(
            *(cluster.run(job(name, f"print({name!r})"), timeout_s=20) for name in "ab")
        )
    assert [result.logs["master-0"] for result in both] == ["a\n", "b\n"]
    with pytest.raises(RuntimeError, match="inside its `with` block"):
        _ = cluster.kubeconfig


async def test_cluster_is_opened_by_one_of_two_tasks_at_once() -> None:
    cluster = dlctl.Cluster(network="host")
    async with asyncio.TaskGroup() as group:
        opening = group.create_task(cluster.__aenter__())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="is open already"):
            await cluster.__aenter__()
    async with AsyncExitStack() as stack:
        stack.push_async_exit(opening.result())
        assert (await cluster.run(job("a", "print(1)"), timeout_s=20)).succeeded


async def test_cluster_is_not_opened_inside_its_own_block() -> None:
    async with dlctl.Cluster(network="host") as cluster:
        with pytest.raises(RuntimeError, match="is open already"):
            await cluster.__aenter__()
        assert (await cluster.run(job("a", "print(1)"), timeout_s=20)).succeeded
    async with cluster:
        assert (await cluster.run(job("a", "print(1)"), timeout_s=20)).succeeded


def test_blocking_cluster_ends_with_its_block() -> None:
    cluster = dlctl.BlockingCluster(network="host")
    with pytest.raises(RuntimeError, match="opened first"):
        cluster.run(job("early", "pass"))
    with cluster:
        kubeconfig = cluster.kubeconfig
        assert kubeconfig.exists()
    assert not kubeconfig.exists()


def test_image_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigError, match="image x: /missing does not exist"):
        dlctl.Cluster(images={"x": "/missing"})


def test_cluster_that_cannot_start_raises_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/missing")
    with pytest.raises(ConfigError, match="No such file or directory"):
        dlctl.BlockingCluster(network="host").open()
