"""Children as they are sent to the server: against golden files, and rule by rule."""

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from dlctl.api.job import Replica
from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY_LABEL
from dlctl.dialects.replica_lists.replica_list import ReplicaList
from dlctl.frameworks.mxnet import MXJob
from dlctl.reconcilers.children.renderer import Renderer
from tests.builders import bare_job, entry, kind_of, make_job, mxjob, renderer_of, template
from tests.goldens import (
    ET_OPERATOR,
    KUBEFLOW,
    MANIFESTS,
    as_on_server,
    job_and_children,
    rendered,
    written,
)

SCHEDULER = Replica("scheduler", 0)
WORKER = Replica("worker", 0)


def pod_from(pod_template: JSON, **spec: Any) -> JSON:
    """Return a worker's pod rendered from this template."""
    specs = [entry("SCHEDULER"), entry("WORKER", template=pod_template)]
    return renderer_of(mxjob(replicaSpecs=specs, **spec)).pod(WORKER)


def names(variables: list[JSON]) -> list[str]:
    return [variable["name"] for variable in variables]


@pytest.mark.parametrize("name", MANIFESTS)
def test_children_match_the_golden_file(name: str) -> None:
    assert rendered(MANIFESTS[name]) == written(name)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=f"{path.parent.name}, {path.stem}")
        for path in (*KUBEFLOW, *ET_OPERATOR)
    ],
)
def test_children_match_those_in_the_jobs_golden_file(path: Path) -> None:
    manifest, children = job_and_children(path)
    assert children
    # As text, since the order of variables and labels counts.
    assert json.dumps(rendered(as_on_server(manifest))) == json.dumps(children)


def test_users_variable_wins_and_the_others_follow_it() -> None:
    pod_template = template()
    own = {"name": "DMLC_NUM_WORKER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    pod_template["spec"]["containers"][0]["env"] = [own]
    (container,) = pod_from(pod_template)["spec"]["containers"]
    assert container["env"][0] == own
    assert names(container["env"]).count("DMLC_NUM_WORKER") == 1
    assert len(container["env"]) == 6


def test_only_the_frameworks_container_gets_the_environment() -> None:
    containers = pod_from(template("sidecar", "mxnet"))["spec"]["containers"]
    assert ["env" in container for container in containers] == [False, True]


def test_all_containers_get_the_environment_if_none_has_the_frameworks_name() -> None:
    containers = pod_from(template("a", "b"))["spec"]["containers"]
    assert ["env" in container for container in containers] == [True, True]


def test_api_group_adds_its_own_variables() -> None:
    renderer = renderer_of(mxjob(group="fioravanzo.org"))
    (container,) = renderer.pod(WORKER)["spec"]["containers"]
    assert container["env"][-1] == {"name": "PS_VERBOSE", "value": "2"}


@pytest.mark.parametrize(
    ("given", "rendered_as"),
    [(None, "OnFailure"), ("Always", "OnFailure"), ("OnFailure", "OnFailure"), ("Never", "Never")],
)
def test_restart_policy_always_becomes_on_failure(given: str | None, rendered_as: str) -> None:
    pod_template = template()
    pod_template["spec"]["restartPolicy"] = given
    assert pod_from(pod_template)["spec"]["restartPolicy"] == rendered_as


@pytest.mark.parametrize(("of_job", "rendered_as"), [("", "mine"), ("volcano", "volcano")])
def test_templates_scheduler_is_kept_unless_the_job_names_one(
    of_job: str, rendered_as: str
) -> None:
    pod_template = template()
    pod_template["spec"]["schedulerName"] = "mine"
    assert pod_from(pod_template, schedulerName=of_job)["spec"]["schedulerName"] == rendered_as


def test_template_labels_are_kept_but_do_not_override_the_jobs() -> None:
    labels = {"team": "vision", "task_index": "9", MANAGED_BY_LABEL: "somebody"}
    pod = pod_from({**template(), "metadata": {"labels": labels}})
    assert pod["metadata"]["labels"]["team"] == "vision"
    assert pod["metadata"]["labels"]["task_index"] == "0"
    assert pod["metadata"]["labels"][MANAGED_BY_LABEL] == "dlctl"


def test_template_can_set_the_managed_by_label() -> None:
    pod = pod_from({**template(), "metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}})
    assert pod["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_service_selects_its_replicas_pod() -> None:
    renderer = renderer_of(mxjob())
    service, pod = renderer.service(SCHEDULER), renderer.pod(SCHEDULER)
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    other = renderer.pod(WORKER)
    assert not service["spec"]["selector"].items() <= other["metadata"]["labels"].items()


def test_rendering_does_not_modify_the_job() -> None:
    renderer = renderer_of(mxjob())
    first = renderer.pod(WORKER)
    first["spec"]["containers"][0]["env"].append({"name": "X"})
    assert renderer.job == make_job()
    assert len(renderer.pod(WORKER)["spec"]["containers"][0]["env"]) == 6


@pytest.mark.parametrize(
    ("wire", "dialled"),
    [
        pytest.param(mxjob(servers=1, workers=1), ["scheduler-0"], id="kubeflow"),
        pytest.param(
            mxjob(group="fioravanzo.org", servers=1, workers=1),
            ["scheduler-0", "server-0", "worker-0"],
            id="fioravanzo",
        ),
        pytest.param(bare_job("TFJob", ps=1, worker=1), ["ps-0", "worker-0"], id="mpba"),
        pytest.param(mxjob(jobMode="local"), [], id="local"),
    ],
)
def test_services_are_created_for_replicas_that_others_connect_to(
    wire: JSON, dialled: list[str]
) -> None:
    assert [str(replica) for replica in renderer_of(wire).replicas_with_service()] == dialled


def test_local_job_gets_no_cluster_environment() -> None:
    renderer = renderer_of(mxjob(jobMode="local"))
    (container,) = renderer.pod(WORKER)["spec"]["containers"]
    assert (container["name"], "env" in container) == ("mxnet", False)


def test_rendering_a_pod_of_an_unlisted_type_raises() -> None:
    with pytest.raises(LookupError, match="ml/linear lists no tuner"):
        renderer_of(mxjob()).pod(Replica("tuner", 0))


@pytest.mark.parametrize(
    ("containers", "trains"),
    [(["sidecar", "mxnet"], "mxnet"), (["first", "second"], "first")],
)
def test_exit_code_is_read_from_the_frameworks_container_or_the_first(
    containers: list[str], trains: str
) -> None:
    job = make_job(replicaSpecs=[entry("SCHEDULER", template=template(*containers))])
    assert job.replica_specs[0].container == trains


VOLUMES = ["/data/set-1", "/data/set_1", "/tmp", "/a" * 40]


class VolumeJob(MXJob):
    """MXNet with volumes, the names of whose paths are alike."""

    job_type = "VolumeJob"
    container_properties = {"name": "mxnet", "ports": [1], "volumes": VOLUMES}  # noqa: RUF012


def test_framework_volumes_get_valid_names_and_yield_to_user_mounts() -> None:
    pod_template = template()
    mine = {"name": "mine", "mountPath": "/tmp"}
    pod_template["spec"]["containers"][0]["volumeMounts"] = [mine]
    job = make_job(replicaSpecs=[entry("SCHEDULER", template=pod_template)])
    dialect = kind_of().dialects["v1alpha1"]
    assert isinstance(dialect, ReplicaList)
    form = attrs.evolve(dialect.form, framework=VolumeJob)
    pod = Renderer(job, ReplicaList(form)).pod(SCHEDULER)
    own, *mounts = pod["spec"]["containers"][0]["volumeMounts"]
    assert own == mine
    assert [mount["mountPath"] for mount in mounts] == ["/data/set-1", "/data/set_1", "/a" * 40]
    names = [mount["name"] for mount in mounts]
    assert len({*names}) == 3
    assert all(re.fullmatch(r"dl-[a-z0-9-]{1,60}", name) for name in names)
    assert all({"name": name, "emptyDir": {}} in pod["spec"]["volumes"] for name in names)
