"""MPIJobs of v1 are read as if v2beta1 did not exist, even if a webhook has added its defaults."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from dlctl.dialects.kubeflow.mpi_v2beta1.fields import DEFAULTS
from tests.builders import manifest, renderer_of, template

CONTAINERS = st.sampled_from([template("mpi"), template("horovod", "mpi")])
RESTARTS = st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"])
CLEANING = st.sampled_from(["", "None", "Running", "All"])
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "cleanPodPolicy": CLEANING,
        "backoffLimit": st.integers(0, 9),
        "activeDeadlineSeconds": st.integers(1, 99),
        "ttlSecondsAfterFinished": st.integers(0, 99),
    },
)


def replicas(counts: st.SearchStrategy[int]) -> st.SearchStrategy[JSON]:
    return st.fixed_dictionaries(
        {"template": CONTAINERS}, optional={"replicas": counts, "restartPolicy": RESTARTS}
    )


SPECS = st.builds(
    lambda specs, fields, policies: {"mpiReplicaSpecs": specs, **fields, **policies},
    st.fixed_dictionaries(
        {"Launcher": replicas(st.just(1))}, optional={"Worker": replicas(st.integers(0, 3))}
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "slotsPerWorker": st.integers(1, 8),
            "mainContainer": st.just("horovod"),
            "runPolicy": POLICIES,
        },
    ),
    POLICIES,
)


def children(spec: JSON) -> Any:
    """Return what a job of v1 is, and its objects."""
    wire = manifest("kubeflow.org/v1", "MPIJob", spec)
    wire["metadata"]["annotations"] = {"dlctl.dev/mpijob-version": "v1"}
    renderer = renderer_of(wire)
    job = renderer.job
    assert (job.resource.version, job.launcher_job, job.shares_service) == ("v1", None, False)
    pods = [renderer.pod(replica) for replica in job.replicas]
    dependents = [renderer.dependent(each) for each in renderer.dependents(list(job.replicas))]
    return pods, dependents, job.replica_specs, job.run_policy, job.success_policy, job.warnings


@settings(max_examples=50, deadline=None)
@given(SPECS)
def test_defaults_of_v2beta1_do_not_change_a_job_of_v1(spec: JSON) -> None:
    assert children({**DEFAULTS, **spec}) == children(spec)
