"""What ``dlctl check`` says about manifests, without a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from dlctl.cli.manifests.operators import operator_of
from tests.builders import KINDS, mxjob, training_job
from tests.dialects.et_operator.manifests import elastic_job
from tests.docs.pages import ROOT
from tests.mpi_v2beta1 import mpi_job
from tests.support.command_line import Dlctl, Written


def pytorch_job(**spec: Any) -> dict[str, Any]:
    container = {"name": "pytorch", "image": "python", "command": ["true"]}
    master = {"restartPolicy": "ExitCode", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "train"},
        "spec": {"pytorchReplicaSpecs": {"Master": master}, **spec},
    }


def test_valid_job_exits_0_with_its_operator_and_differences(
    dlctl: Dlctl, written: Written
) -> None:
    done = dlctl("check", written(pytorch_job()))
    assert (done.code, done.err) == (0, "")
    assert "line 1: PyTorchJob train (kubeflow.org/v1): valid" in done.out
    assert "written for: Kubeflow training-operator v1 (docs/migrate/" in done.out
    assert "differs: restartPolicy ExitCode: 128, 139 and OOMKilled" in done.out


def test_policy_of_a_template_that_is_overwritten_is_a_warning(
    dlctl: Dlctl, written: Written
) -> None:
    job = pytorch_job()
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["restartPolicy"] = "Nevver"
    warning = "Restart policy in pod template will be overwritten by restart policy in replica spec"
    done = dlctl("check", written(job))
    assert (done.code, done.err) == (0, "")
    assert f"  warning: {warning}\n" in done.out
    (report,) = json.loads(dlctl("check", "-o", "json", written(job)).out)
    assert report["warnings"] == [warning]


@pytest.mark.parametrize(
    ("counts", "policy", "noted"),
    [
        pytest.param({"PS": 1, "Worker": 2}, {}, True, id="default"),
        pytest.param(
            {"PS": 1, "Worker": 2}, {"runPolicy": {"cleanPodPolicy": ""}}, True, id="empty"
        ),
        pytest.param({"PS": 1, "Worker": 2}, {"cleanPodPolicy": "None"}, False, id="chosen"),
        pytest.param(
            {"PS": 1, "Worker": 2}, {"runPolicy": {"cleanPodPolicy": "None"}}, False, id="in policy"
        ),
        pytest.param({"Worker": 2}, {}, False, id="no servers"),
    ],
)
def test_servers_that_outlive_their_job_are_noted(
    dlctl: Dlctl, written: Written, counts: dict[str, int], policy: dict[str, Any], *, noted: bool
) -> None:
    job = training_job("TFJob", **counts)
    job["spec"].update(policy)
    done = dlctl("check", written(job))
    assert (done.code, done.err) == (0, "")
    assert ("note: PS replicas run on after the job has ended" in done.out) == noted
    (report,) = json.loads(dlctl("check", "-o", "json", written(job)).out)
    assert len(report["notes"]) == noted


def test_workers_that_outlive_their_launcher_are_noted(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("check", written(mpi_job(2)))
    assert "note: Worker replicas run on after the job has ended" in done.out
    assert "note:" not in dlctl("check", written(mxjob())).out


def test_empty_fields_that_a_template_leaves_mean_the_default(
    dlctl: Dlctl, written: Written
) -> None:
    job = pytorch_job()
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    template |= {"schedulerName": "", "serviceAccountName": "", "dnsPolicy": ""}
    template["containers"][0]["imagePullPolicy"] = ""
    done = dlctl("check", written(job))
    assert (done.code, done.err) == (0, "")
    assert "problem" not in done.out


@pytest.mark.parametrize("kind", ["Experiment", "Notebook", "Profile"])
def test_object_of_another_component_of_kubeflow_is_no_problem(
    dlctl: Dlctl, written: Written, kind: str
) -> None:
    metadata = {"name": "other"}
    other = {"apiVersion": "kubeflow.org/v1beta1", "kind": kind, "metadata": metadata, "spec": {}}
    done = dlctl("check", written(other, pytorch_job()))
    assert (done.code, done.err) == (0, "")
    assert f"{kind} other (kubeflow.org/v1beta1): not a job, not checked" in done.out


@pytest.mark.parametrize(
    ("job", "problems"),
    [
        pytest.param(
            {"kind": "PyTorchJob", "spec": {"backend": "gloo", "replicaSpec": []}},
            ["spec.replicaSpec: unknown field 'replicaSpec'; did you mean replicaSpecs?"],
            id="misspelt",
        ),
        pytest.param(
            {"kind": "TFJob", "spec": {"tfImage": "x"}},
            ["spec.replicaSpecs: is missing: give a list"],
            id="missing",
        ),
    ],
)
def test_job_that_lacks_what_its_version_is_known_by_is_named_in_the_fields_of_that_version(
    dlctl: Dlctl, written: Written, job: dict[str, Any], problems: list[str]
) -> None:
    wire = {"apiVersion": "kubeflow.org/v1alpha1", "metadata": {"name": "old"}, **job}
    done = dlctl("check", "-o", "json", written(wire))
    (report,) = json.loads(done.out)
    assert (done.code, [each["message"] for each in report["problems"]]) == (1, problems)


def test_annotation_without_a_value_is_empty(dlctl: Dlctl, written: Written) -> None:
    job = pytorch_job()
    job["metadata"] |= {"annotations": {"note": None}, "labels": {"team": None}}
    done = dlctl("check", written(job))
    assert (done.code, done.err) == (0, "")
    rendered = dlctl("render", written(job))
    assert (rendered.code, rendered.err) == (0, "")


def test_job_with_only_a_generate_name_is_valid(dlctl: Dlctl, written: Written) -> None:
    job = pytorch_job()
    job["metadata"] = {"generateName": "train-"}
    done = dlctl("check", written(job))
    assert (done.code, done.err) == (0, "")


def test_problems_exit_1_and_are_listed_with_their_lines(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("check", written(pytorch_job(runpolicy={}), pytorch_job()))
    assert done.code == 1
    assert "PyTorchJob train (kubeflow.org/v1): 1 problem\n" in done.out
    assert "spec.runpolicy: unknown field 'runpolicy'; did you mean runPolicy?" in done.out
    # The second has the name of the first.
    assert "metadata.name: PyTorchJob train in" in done.out


def test_unknown_fields_and_wrong_values_are_listed_together_in_the_order_of_lines(
    dlctl: Dlctl, written: Written
) -> None:
    job = pytorch_job(runPolicy={"cleanPodPolicy": "Some", "ttlSeconds": 1})
    master = job["spec"]["pytorchReplicaSpecs"]["Master"]
    master["replicas"] = -1
    master["template"]["spec"]["containers"] = [{"name": "pytorch", "imag": "python"}]
    done = dlctl("check", "-o", "json", written(job))
    (report,) = json.loads(done.out)
    # The image is not missing: it is misspelt.
    assert [problem["field"].removeprefix("spec.") for problem in report["problems"]] == [
        "pytorchReplicaSpecs.Master.replicas",
        "pytorchReplicaSpecs.Master.template.spec.containers[0].imag",
        "runPolicy.cleanPodPolicy",
        "runPolicy.ttlSeconds",
    ]


def test_json_has_an_entry_for_each_object(dlctl: Dlctl, written: Written) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    job = pytorch_job(runPolicy={"cleanPodPolicy": 1})
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["tolerations"] = []
    done = dlctl("check", "-o", "json", written(config, job))
    assert done.code == 1
    first, second = json.loads(done.out)
    assert (first["kind"], first["operator"], first["problems"]) == ("ConfigMap", None, [])
    assert (second["document"], second["name"]) == (2, "train")
    assert second["ignoredLocally"] == ["tolerations"]
    (problem,) = second["problems"]
    assert problem["field"] == "spec.runPolicy.cleanPodPolicy"
    assert problem["line"] > second["line"]


@pytest.mark.parametrize(
    ("api_version", "kind"), [("v1", "List"), ("kubeflow.org/v1", "PyTorchJobList")]
)
def test_items_of_a_list_are_checked(
    api_version: str, kind: str, dlctl: Dlctl, written: Written
) -> None:
    jobs = [{**pytorch_job(), "metadata": {"name": name}} for name in ("a", "b")]
    document = {"apiVersion": api_version, "kind": kind, "metadata": {}, "items": jobs}
    done = dlctl("check", "-o", "json", written(document))
    assert done.code == 0
    assert [each["name"] for each in json.loads(done.out)] == ["a", "b"]


def test_list_in_a_list_is_refused_as_by_kubectl(dlctl: Dlctl, written: Written) -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [pytorch_job()]}
    done = dlctl("check", written({"apiVersion": "v1", "kind": "List", "items": [inner]}))
    assert (done.code, done.out) == (2, "")
    assert "job.yaml, line 3: a list in a list: move its items to the outer one\n" in done.err


def test_what_a_run_would_refuse_is_no_problem_of_the_manifest(
    dlctl: Dlctl, written: Written
) -> None:
    job = mxjob(workers=1)
    done = dlctl("check", written(job))
    assert done.code == 0
    assert "dlctl run would refuse it: spec.replicaSpecs[0].template.spec.containers[0]" in done.out


def test_job_of_another_operator_is_not_served(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("check", written({**pytorch_job(), "apiVersion": "kubeflow.org/v3"}))
    assert done.code == 1
    assert "does not serve PyTorchJob in kubeflow.org/v3; it serves" in done.out


def test_parts_that_a_laptop_uses_are_not_called_ignored(dlctl: Dlctl, written: Written) -> None:
    job = pytorch_job()
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"] |= {
        "affinity": {"nodeAffinity": {}, "podAntiAffinity": {}},
        "dnsConfig": {"searches": ["example.com"], "options": [{"name": "ndots", "value": "2"}]},
        "tolerations": [{"operator": "Exists"}],
    }
    done = dlctl("check", written(job))
    ignored = "affinity.podAntiAffinity, dnsConfig.options, tolerations"
    assert f"  ignored by dlctl run: {ignored}\n" in done.out


def test_object_that_is_no_job_is_left_alone(dlctl: Dlctl, written: Written) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}}
    done = dlctl("check", written(job))
    assert done.code == 0
    assert "not a job, not checked" in done.out


def test_file_that_cannot_be_read_exits_2(dlctl: Dlctl) -> None:
    assert dlctl("check", "/nowhere.yaml").code == 2


@pytest.mark.parametrize("output", ["text", "json"])
def test_files_beside_one_that_cannot_be_read_are_checked(
    output: str, dlctl: Dlctl, written: Written, tmp_path: Path
) -> None:
    half = tmp_path / "half.yaml"
    half.write_text("a: 1\n---\n{")
    job = written(pytorch_job(elastic=1))
    done = dlctl("check", "-o", output, "/nowhere.yaml", str(half), job)
    assert done.code == 2
    assert job in done.out
    assert "spec.elastic: unknown field 'elastic'" in done.out
    nowhere, broken = done.err.splitlines()
    assert nowhere.startswith("dlctl: cannot read /nowhere.yaml")
    assert broken.startswith(f"dlctl: {half}")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param(f"{kind.resource.group}/{version}", kind.resource.kind)
        for kind in KINDS
        for version in kind.dialects
    ],
)
def test_operator_of_each_served_version_is_known(api_version: str, kind: str) -> None:
    operator = operator_of({"apiVersion": api_version, "kind": kind, "spec": {}})
    assert "operator" in operator.name


@pytest.mark.parametrize(
    ("spec", "differs"),
    [
        pytest.param({}, True, id="limit by default"),
        pytest.param({"backoffLimit": 0}, False, id="no retries"),
    ],
)
def test_retries_of_a_second_mpi_job_count_workers_as_well(
    spec: dict[str, Any], differs: bool
) -> None:
    job = {"apiVersion": "kubeflow.org/v1alpha2", "kind": "MPIJob", "spec": spec}
    found = " ".join(operator_of(job).differences_of(job))
    assert ("also counts the failures of workers" in found) is differs


@pytest.mark.parametrize(("version", "noted"), [("v1", True), ("v1beta2", False)])
def test_servers_are_not_noted_in_versions_that_delete_them_by_default(
    dlctl: Dlctl, written: Written, version: str, *, noted: bool
) -> None:
    job = {**training_job("TFJob", PS=1, Worker=2), "apiVersion": f"kubeflow.org/{version}"}
    done = dlctl("check", written(job))
    assert (done.code, done.err) == (0, "")
    assert ("note: PS replicas run on after the job has ended" in done.out) == noted


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_waiting_for_workers_is_not_new_to_early_mpi_jobs(version: str) -> None:
    job = {"apiVersion": f"kubeflow.org/{version}", "kind": "MPIJob", "spec": {}}
    assert "held back" not in " ".join(operator_of(job).differences_of(job))


@pytest.mark.parametrize(
    ("kind", "replica", "restarts"),
    [
        pytest.param("XGBoostJob", {}, False, id="never by default"),
        pytest.param("XGBoostJob", {"restartPolicy": "OnFailure"}, True, id="on failure"),
        pytest.param("PyTorchJob", {}, True, id="on failure by default"),
        pytest.param("PyTorchJob", {"restartPolicy": "Never"}, False, id="never"),
    ],
)
def test_restarts_differ_by_the_policy_of_replicas_not_of_templates(
    kind: str, replica: dict[str, Any], restarts: bool
) -> None:
    template = {"spec": {"restartPolicy": "Never" if restarts else "OnFailure"}}
    spec = {"replicaSpecs": {"Master": {**replica, "template": template}}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": kind, "spec": spec}
    found = " ".join(operator_of(job).differences_of(job))
    assert ("replaced after 10 s" in found) is restarts


def test_whole_job_restarts_only_by_the_policy_of_the_job() -> None:
    job = elastic_job()
    job["spec"]["etReplicaSpecs"]["worker"]["restartPolicy"] = "OnFailure"
    assert "whole-job" not in " ".join(operator_of(job).differences_of(job))
    job["spec"]["restartPolicy"] = "OnFailure"
    assert "whole-job" in " ".join(operator_of(job).differences_of(job))


def test_elastic_job_has_its_operator() -> None:
    assert operator_of(elastic_job()).name == "et-operator"


def test_pages_of_the_operators_exist() -> None:
    pages = {
        operator_of({"apiVersion": f"{k.resource.group}/{v}", "kind": k.resource.kind}).page
        for k in KINDS
        for v in k.dialects
    }
    assert [page for page in pages if not (ROOT / page).exists()] == []


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "---\n---\n"])
def test_file_without_an_object_is_no_valid_one(dlctl: Dlctl, tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text(text)
    done = dlctl("check", str(path))
    assert (done.code, done.out) == (2, "")
    assert f"no objects in {path}" in done.err
