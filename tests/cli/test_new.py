"""Manifests to start from."""

from pathlib import Path

import pytest
import yaml

from dlctl.cli.manifests.job_forms import FORMS, JobForm, Program, job_form
from tests.support.command_line import Dlctl


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.names[0])
def test_printed_manifest_becomes_two_workers(dlctl: Dlctl, tmp_path: Path, form: JobForm) -> None:
    done = dlctl("new", form.names[0])
    assert done.code == 0, done.err
    assert done.out.startswith(f"# {form.kind} with 2 workers")
    path = tmp_path / "job.yaml"
    path.write_text(done.out)
    rendered = dlctl("render", str(path))
    assert rendered.code == 0, rendered.err
    # A launcher may be the pod of a Job.
    pods = [doc for doc in yaml.safe_load_all(rendered.out) if doc["kind"] in ("Pod", "Job")]
    assert len(pods) == sum(form.counts(2).values())


@pytest.mark.parametrize("words", ["new pytorch", "run --kind pytorch --dry-run train.py"])
def test_name_that_no_job_can_have_is_refused(dlctl: Dlctl, words: str) -> None:
    done = dlctl(*words.split(), "--name", "My_Job")
    assert (done.code, done.out) == (2, "")
    assert "argument --name: 'My_Job': use lower-case letters, digits and '-'" in done.err


def test_printed_manifest_runs_as_it_is(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(dlctl("new", "jax", "--name", "try").out)
    done = dlctl("run", str(path), "--timeout", "20")
    assert done.code == 0, done.err
    assert "process 1 of 2 meets the others at try-worker-0" in done.out


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("pytorch", "PyTorchJob", id="framework"),
        pytest.param("TFJob", "TFJob", id="kind"),
        pytest.param("TensorFlow", "TFJob", id="alias"),
        pytest.param("trainingjob", "TrainingJob", id="kind in lower case"),
        pytest.param("mpi-ssh", "MPIJob", id="version"),
    ],
)
def test_kind_has_the_names_that_users_type(name: str, kind: str) -> None:
    assert job_form(name).kind == kind


def test_missing_kind_exits_2_with_the_known_ones(dlctl: Dlctl) -> None:
    done = dlctl("new")
    assert done.code == 2
    assert "name a kind: pytorch, tf," in done.err


def test_unknown_kind_exits_2_with_the_known_ones(dlctl: Dlctl) -> None:
    done = dlctl("new", "tensorflw")
    assert done.code == 2
    assert "did you mean tensorflow?" in done.err
    assert "use one of pytorch, tf," in done.err


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.names[0])
def test_workers_count_the_master_and_no_launcher(form: JobForm) -> None:
    counts = form.manifest("x", 4, Program(["true"], "image"))["spec"][form.specs_field]
    training = {"Master", "Worker", "worker"}
    assert sum(spec["replicas"] for type_, spec in counts.items() if type_ in training) == 4
