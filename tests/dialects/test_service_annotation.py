"""The annotation ``dlctl.dev/service`` as jobs are read."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import JobPhase
from dlctl.errors import InvalidJobError
from tests.builders import make_job, mxjob, training_job
from tests.dialects.et_operator.manifests import elastic_job

FIELD = "metadata.annotations[dlctl.dev/service]"


def annotated(wire: JSON, value: str, *, phase: JobPhase = JobPhase.NEW) -> JSON:
    metadata = {**wire["metadata"], "annotations": {"dlctl.dev/service": value}}
    status = {"dlctl": {"phase": phase}} if phase else {}
    return {**wire, "metadata": metadata, "status": status}


def with_template(**fields: str) -> JSON:
    wire = training_job("JAXJob", Worker=2)
    wire["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"] |= fields
    return wire


@pytest.mark.parametrize(("value", "shared"), [("job", True), ("replica", False)])
def test_replicas_share_a_service_if_the_annotation_says_so(value: str, *, shared: bool) -> None:
    assert make_job(annotated(mxjob(), value)).shares_service is shared


def test_replicas_have_a_service_each_by_default() -> None:
    assert not make_job(mxjob()).shares_service


@pytest.mark.parametrize(
    ("wire", "value", "problem"),
    [
        pytest.param(mxjob(), "jobs", "is 'jobs': use job or replica", id="unknown"),
        pytest.param(mxjob(), "", "is '': use job or replica", id="empty"),
        pytest.param(
            training_job("MPIJob", Launcher=1, Worker=2),
            "job",
            "is job, but replicas of MPIJobs are reached by the names of their pods: remove the "
            "annotation",
            id="MPIJob",
        ),
        pytest.param(elastic_job(), "job", "replicas of TrainingJobs are", id="TrainingJob"),
        pytest.param(
            with_template(subdomain="mine"),
            "job",
            "is job, which gives each pod a host name of its own, but the template of type worker "
            "sets subdomain: remove one of them",
            id="subdomain",
        ),
        pytest.param(with_template(hostname="me"), "job", "worker sets hostname", id="hostname"),
    ],
)
def test_new_job_that_cannot_share_a_service_is_rejected(
    wire: JSON, value: str, problem: str
) -> None:
    with pytest.raises(InvalidJobError) as raised:
        make_job(annotated(wire, value))
    assert str(raised.value).startswith(f"{FIELD}: ")
    assert problem in str(raised.value)


@pytest.mark.parametrize("value", ["jobs", "job"])
def test_bad_edit_of_the_annotation_does_not_stop_a_started_job(value: str) -> None:
    wire = with_template(subdomain="mine")
    assert not make_job(annotated(wire, value, phase=JobPhase.RUNNING)).shares_service


def test_name_too_long_for_a_host_name_is_rejected() -> None:
    wire = training_job("JAXJob", "n" * 56, Worker=1)
    with pytest.raises(InvalidJobError, match="DNS allows 63: shorten it by 2"):
        make_job(annotated(wire, "job"))
