import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import mxjob, training_job
from tests.dialects.et_operator.manifests import elastic_job
from tests.mpi_v2beta1 import mpi_job
from tests.support.command_line import Dlctl, Written


def test_children_of_a_job_are_rendered_without_a_cluster(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("render", written(mxjob(workers=2)))
    children = list(yaml.safe_load_all(done.out))
    assert done.code == 0
    assert [child["kind"] for child in children] == ["Service"] + ["Pod"] * 4
    assert {child["metadata"]["namespace"] for child in children} == {"ml"}


def test_replicas_that_share_a_service_are_rendered_with_one(
    dlctl: Dlctl, written: Written
) -> None:
    job = mxjob(workers=2)
    job["metadata"]["annotations"] = {"dlctl.dev/service": "job"}
    done = dlctl("render", written(job))
    service, *pods = yaml.safe_load_all(done.out)
    assert done.code == 0
    assert service["kind"] == "Service"
    assert [pod["kind"] for pod in pods] == ["Pod"] * 4
    assert {pod["spec"]["subdomain"] for pod in pods} == {service["metadata"]["name"]}


def test_elastic_job_is_rendered_with_all_of_its_workers_and_no_key(
    dlctl: Dlctl, written: Written
) -> None:
    done = dlctl("render", written(elastic_job(launcherAttachMode="kubexec")))
    children = {child["kind"]: child for child in yaml.safe_load_all(done.out)}
    assert done.code == 0
    workers = ["linear-worker-0", "linear-worker-1"]
    assert children["ConfigMap"]["data"]["hostfile"] == "".join(f"{w}:1\n" for w in workers)
    (entered,) = [rule for rule in children["Role"]["rules"] if "pods/exec" in rule["resources"]]
    assert entered["resourceNames"] == workers
    assert children["Pod"]["metadata"]["name"] == workers[1]
    assert "Secret" not in children


def test_launcher_of_mpi_operators_job_is_rendered_as_a_job(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("render", written(mpi_job(policy={"suspend": True})))
    children = list(yaml.safe_load_all(done.out))
    assert done.code == 0
    assert [child["kind"] for child in children] == ["ConfigMap", "Service", "Pod", "Pod", "Job"]
    assert children[-1]["spec"]["suspend"] is True


def test_job_without_replicas_is_rendered_as_nothing(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("render", written(training_job("JAXJob", Worker=0)))
    assert (done.code, done.out) == (0, "")
    assert done.err == "dlctl: JAXJob linear gets no objects without replicas\n"


def test_job_with_generate_name_is_rendered_with_an_example_name(
    dlctl: Dlctl, written: Written
) -> None:
    job = mxjob(workers=1)
    job["metadata"] = {"generateName": "linear-"}
    done = dlctl("render", written(job))
    assert done.code == 0
    owners = {
        child["metadata"]["ownerReferences"][0]["name"] for child in yaml.safe_load_all(done.out)
    }
    (name,) = owners
    assert re.fullmatch("linear-[a-z0-9]{5}", name)
    assert f"the API server generates the name of each job; it is {name} here" in done.err


def test_objects_that_are_not_jobs_are_skipped(dlctl: Dlctl, written: Written) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}}
    done = dlctl("render", written(config, mxjob(workers=1)))
    assert done.code == 0
    assert "ConfigMap" not in done.out


def _bad_count() -> dict[str, Any]:
    job = mxjob()
    job["spec"]["replicaSpecs"][0]["replicas"] = 3
    return job


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        pytest.param(
            _bad_count(), "line 11: MXJob linear: spec.replicaSpecs[0].replicas", id="invalid field"
        ),
        pytest.param({"kind": "ConfigMap", "apiVersion": "v1"}, "none of the manifests", id="none"),
        pytest.param(["no", "object"], "a document is a list", id="no object"),
    ],
)
def test_invalid_manifest_is_reported_and_exits_2(
    dlctl: Dlctl, written: Written, manifest: Any, message: str
) -> None:
    done = dlctl("render", written(manifest))
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_missing_file_is_named(dlctl: Dlctl) -> None:
    done = dlctl("render", "nowhere.yaml")
    assert done.code == 2
    assert done.err == "dlctl: cannot read nowhere.yaml: No such file or directory\n"


def test_address_of_a_manifest_is_no_file(dlctl: Dlctl) -> None:
    done = dlctl("render", "https://example.com/job.yaml")
    assert done.code == 2
    assert done.err == "dlctl: https://example.com/job.yaml: save it as a file, or pipe it to `-`\n"


def test_manifest_without_an_end_of_nesting_is_reported(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("kind: " + "[" * 5000)
    done = dlctl("render", str(path))
    assert done.code == 2
    assert done.err == f"dlctl: {path}: its lists and mappings are nested too deeply\n"


def test_malformed_yaml_is_reported_with_file_and_line(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("kind: MXJob\nspec: [\n")
    done = dlctl("render", str(path))
    assert done.code == 2
    assert done.err.startswith(f"dlctl: {path} is not YAML: line 3, column 1: ")
    assert done.err.count("\n") == 1
