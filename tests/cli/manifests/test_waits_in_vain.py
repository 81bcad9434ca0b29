"""Jobs that wait for somebody whom a laptop does not have: a run says so before it starts."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.dialects.et_operator.policies import SUSPENDED_ANNOTATION
from tests.builders import mxjob, training_job
from tests.dialects.et_operator.manifests import elastic_job
from tests.mpi_v2beta1 import mpi_job
from tests.support.command_line import Dlctl, Written, script_job


def pytorch_job(pod: Any = None, /, **spec: Any) -> JSON:
    """Return a job of one master; ``pod`` has more fields of its pod."""
    job = training_job("PyTorchJob", Master=1)
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["spec"]["containers"][0]["command"] = ["true"]
    template["spec"] |= pod or {}
    job["spec"] |= spec
    return job


def list_job(**spec: Any) -> JSON:
    job = script_job("")
    job["spec"] |= spec
    return job


TEMPLATE = "spec.pytorchReplicaSpecs.Master.template.spec"
SUSPENDED = "the job is suspended, and nobody resumes it here: set it to false"


@pytest.mark.parametrize(
    ("job", "message"),
    [
        pytest.param(
            pytorch_job({"schedulerName": "volcano"}),
            f'{TEMPLATE}.schedulerName: this machine has no scheduler "volcano": leave it out',
            id="scheduler",
        ),
        pytest.param(
            list_job(schedulerName="volcano"),
            'spec.schedulerName: this machine has no scheduler "volcano": leave it out',
            id="scheduler of a job",
        ),
        pytest.param(
            pytorch_job({"nodeName": "gpu-7"}),
            f'{TEMPLATE}.nodeName: the only node here is "localhost": leave it out',
            id="node",
        ),
        pytest.param(
            pytorch_job({"schedulingGates": [{"name": "example.com/quota"}]}),
            f"{TEMPLATE}.schedulingGates[0]: nobody removes example.com/quota here: leave it out",
            id="gate",
        ),
        pytest.param(
            pytorch_job(runPolicy={"suspend": True}),
            f"spec.runPolicy.suspend: {SUSPENDED}",
            id="suspended",
        ),
        pytest.param(
            mpi_job(policy={"suspend": True}),
            f"spec.runPolicy.suspend: {SUSPENDED}",
            id="suspended MPIJob",
        ),
        pytest.param(
            elastic_job(annotations={SUSPENDED_ANNOTATION: "true"}),
            f"metadata.annotations.{SUSPENDED_ANNOTATION}: {SUSPENDED}",
            id="suspended by an annotation",
        ),
        pytest.param(
            mxjob(runPolicy={"suspend": True}),
            f"spec.runPolicy.suspend: {SUSPENDED}",
            id="suspended list",
        ),
        pytest.param(
            pytorch_job(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}),
            "spec.runPolicy.managedBy: that controller is not here: leave it out",
            id="of another controller",
        ),
    ],
)
def test_job_that_would_wait_in_vain_is_refused(
    dlctl: Dlctl, written: Written, job: JSON, message: str
) -> None:
    done = dlctl("run", written(job))
    assert (done.code, done.out) == (1, "")
    assert message in done.err
    checked = dlctl("check", written(job))
    assert checked.code == 0
    assert f"  dlctl run would refuse it: {message}" in checked.out


def list_job_of_template(scheduler: str) -> JSON:
    job = list_job(schedulerName="default-scheduler")
    job["spec"]["replicaSpecs"][0]["template"]["spec"]["schedulerName"] = scheduler
    return job


def job_without_its_ps(pod: JSON) -> JSON:
    job = training_job("TFJob", Worker=1, PS=0)
    for spec in job["spec"]["tfReplicaSpecs"].values():
        spec["template"]["spec"]["containers"][0]["command"] = ["true"]
    job["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"] |= pod
    return job


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(list_job_of_template("volcano"), id="scheduler of the job"),
        pytest.param(job_without_its_ps({"nodeName": "gpu-7"}), id="node"),
        pytest.param(job_without_its_ps({"schedulerName": "volcano"}), id="scheduler"),
        pytest.param(job_without_its_ps({"schedulingGates": [{"name": "a.b/c"}]}), id="gate"),
        pytest.param(job_without_its_ps({"serviceAccountName": "trainer"}), id="account"),
        pytest.param(
            job_without_its_ps(
                {"volumes": [{"name": "data", "nfs": {"server": "nas", "path": "/data"}}]}
            ),
            id="volume",
        ),
        pytest.param(
            job_without_its_ps(
                {"volumes": [{"name": "data", "hostPath": {"path": "/not/on/this/machine"}}]}
            ),
            id="path",
        ),
    ],
)
def test_fields_that_no_pod_gets_do_not_stop_a_job(
    dlctl: Dlctl, written: Written, job: JSON
) -> None:
    done = dlctl("run", written(job), "--timeout", "20")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    "pod", [{"schedulerName": "default-scheduler"}, {"nodeName": "localhost"}, {"nodeName": ""}]
)
def test_job_for_this_node_and_its_scheduler_runs(
    dlctl: Dlctl, written: Written, pod: JSON
) -> None:
    job = pytorch_job(pod, runPolicy={"suspend": False})
    done = dlctl("run", written(job), "--timeout", "20")
    assert done.code == 0, done.err
