"""Jobs whose replicas share one service: the same children, with longer host names."""

import json

import pytest

from dlctl.api.job import Replica
from dlctl.api.json_types import JSON
from dlctl.frameworks.kubeflow.pytorch_init import PyTorchInit, init_containers
from tests.builders import (
    bare_job,
    entry,
    manifest,
    mxjob,
    renderer_of,
    tfjob_of_tensorflow_org,
    training_job,
    xgboost_operators_job,
)

JOBS = {
    "TFJob": training_job("TFJob", Chief=1, PS=2, Worker=2),
    "dynamic TFJob": training_job("TFJob", PS=1, Worker=2),
    "PyTorchJob": training_job("PyTorchJob", Master=1, Worker=2),
    "elastic PyTorchJob": training_job("PyTorchJob", Worker=2),
    "XGBoostJob": training_job("XGBoostJob", Master=1, Worker=2),
    "PaddleJob": training_job("PaddleJob", Master=1, Worker=2),
    "JAXJob": training_job("JAXJob", Worker=3),
    "MXJob": training_job("MXJob", Scheduler=1, Server=1, Worker=2),
    "MXJob with tuners": training_job("MXJob", TunerTracker=1, TunerServer=2, Tuner=1),
    "MXJob v1alpha1": mxjob(RuntimeId="ab1c"),
    "MXJob of fioravanzo.org": mxjob(group="fioravanzo.org", RuntimeId="ab1c"),
    "XGBoostJob of xgboost-operator": xgboost_operators_job(),
    "TfJob of tensorflow.org": tfjob_of_tensorflow_org(RuntimeId="ab1c"),
    "MXJob of mpba.fbk.eu": bare_job("MXJob"),
    "TFJob of mpba.fbk.eu": bare_job("TFJob", ps=1, worker=2),
}
JOBS["dynamic TFJob"]["spec"]["enableDynamicWorker"] = True
JOBS["elastic PyTorchJob"]["spec"]["elasticPolicy"] = {"minReplicas": 1}
JOBS["MXJob with tuners"]["spec"]["jobMode"] = "MXTune"
EACH_JOB = pytest.mark.parametrize(
    "wire", [pytest.param(wire, id=name) for name, wire in JOBS.items()]
)


def sharing(wire: JSON) -> JSON:
    metadata = {**wire["metadata"], "annotations": {"dlctl.dev/service": "job"}}
    return {**wire, "metadata": metadata}


def services(wire: JSON) -> list[JSON]:
    renderer = renderer_of(wire)
    return [renderer.service(replica) for replica in renderer.replicas_with_service()]


def pods(wire: JSON) -> list[JSON]:
    renderer = renderer_of(wire)
    return [renderer.pod(replica) for replica in renderer.job.replicas]


def env(wire: JSON, replica: Replica) -> dict[str, str]:
    (container,) = renderer_of(sharing(wire)).pod(replica)["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


@EACH_JOB
def test_one_headless_service_selects_the_pods_of_all_replicas(wire: JSON) -> None:
    (service,) = services(sharing(wire))
    selector = service["spec"]["selector"]
    assert service["spec"]["clusterIP"] == "None"
    assert selector
    assert all(selector.items() <= pod["metadata"]["labels"].items() for pod in pods(wire))
    for each in services(wire):
        assert service["metadata"]["name"] != each["metadata"]["name"]
        early = "publishNotReadyAddresses"
        assert service["spec"].get(early) == each["spec"].get(early)


@EACH_JOB
def test_pods_differ_only_in_host_names_within_the_service(wire: JSON) -> None:
    (service,) = services(sharing(wire))
    name = service["metadata"]["name"]
    for own, shared in zip(pods(wire), pods(sharing(wire)), strict=True):
        assert shared["spec"].pop("hostname") == shared["metadata"]["name"]
        assert shared["spec"].pop("subdomain") == name
        for one in (own, shared):
            one["spec"].pop("initContainers", None)
        hosts = [pod["metadata"]["name"] for pod in pods(wire)]
        text = json.dumps(own["spec"])
        for host in sorted(hosts, key=len, reverse=True):
            text = text.replace(host, f"{host}.{name}")
        assert json.loads(text) == shared["spec"]


def test_environment_has_names_within_the_service() -> None:
    worker = Replica("worker", 1)
    assert env(JOBS["PyTorchJob"], worker)["MASTER_ADDR"] == "linear-master-0.linear"
    assert env(JOBS["JAXJob"], worker)["COORDINATOR_ADDRESS"] == "linear-worker-0.linear"
    workers = "linear-worker-0.linear,linear-worker-1.linear"
    assert env(JOBS["XGBoostJob"], worker)["WORKER_ADDRS"] == workers
    assert env(JOBS["PaddleJob"], worker)["PADDLE_MASTER"] == "linear-master-0.linear:36543"
    config = json.loads(env(JOBS["TFJob"], worker)["TF_CONFIG"])
    assert config["cluster"]["chief"] == ["linear-chief-0.linear.ml.svc:2222"]
    scheduler = "linear-scheduler-ab1c-0.linear-ab1c"
    assert env(JOBS["MXJob v1alpha1"], worker)["DMLC_PS_ROOT_URI"] == scheduler


def test_service_name_follows_the_shortened_name_of_children() -> None:
    long = mxjob(name="n" * 50, RuntimeId="ab1c")
    (service,) = services(sharing(long))
    assert service["metadata"]["name"] == "n" * 40 + "-ab1c"


def test_pytorch_workers_look_up_a_name_with_a_dot_by_the_search_path_too() -> None:
    (init,) = pods(sharing(JOBS["PyTorchJob"]))[1]["spec"]["initContainers"]
    master = "linear-master-0.linear"
    assert f"if nslookup {master} || getent hosts {master}; then" in init["command"][-1]


def test_administrators_init_container_gets_the_master_as_it_is() -> None:
    custom = "[{name: wait, command: [wait-for, '{{.MasterAddr}}']}]"
    (init,) = init_containers(PyTorchInit(template=custom), "linear-master-0.linear")
    assert init["command"] == ["wait-for", "linear-master-0.linear"]


def test_local_job_has_no_service_and_no_subdomain() -> None:
    wire = sharing(mxjob(jobMode="local"))
    assert services(wire) == []
    assert all("subdomain" not in pod["spec"] for pod in pods(wire))


def test_legacy_pytorch_job_shares_a_service_too() -> None:
    entries = [entry("MASTER"), entry("WORKER")]
    for each in entries:
        each["replicaType"] = each.pop("mxReplicaType")
    wire = manifest("kubeflow.org/v1alpha1", "PyTorchJob", {"replicaSpecs": entries})
    wire["spec"]["RuntimeId"] = "ab1c"
    master = env(wire, Replica("worker", 0))["MASTER_ADDR"]
    assert master == "linear-master-ab1c-0.linear-ab1c"
