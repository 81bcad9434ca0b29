"""Pods and files of MPI jobs, as training-operator's users know them."""

import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from dlctl.api.defaults import JobDefaults
from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Resource
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.errors import InvalidJobError
from dlctl.frameworks.kubeflow.mpi import MPIJob
from dlctl.frameworks.launcher_access import KubectlDelivery
from tests.builders import make_job, renderer_of, template, training_job

LAUNCHER: Final = Replica("launcher", 0)
WORKER: Final = Replica("worker", 0)


def manifest(workers: int = 2, *, launcher: JSON | None = None, **spec: Any) -> JSON:
    """Return a job; ``launcher`` is added to the pod spec of its launcher."""
    job = training_job("MPIJob", Launcher=1, Worker=workers)
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"].update(launcher or {})
    job["spec"].update(spec)
    return job


def pod_spec(wire: JSON, replica: Replica) -> JSON:
    return dict(renderer_of(wire).pod(replica)["spec"])


def running(job: Job, *indexes: int, phase: JobPhase = JobPhase.RUNNING) -> JSON:
    """Return the files while these workers run."""
    status = attrs.evolve(job.status, phase=phase)
    replicas = [LAUNCHER, *(Replica("worker", index) for index in indexes)]
    return dict(body(attrs.evolve(job, status=status), CONFIG_MAPS, replicas)["data"])


def body(job: Job, resource: Resource, now: Collection[Replica] = ()) -> JSON:
    (found,) = [c for c in MPIJob(job).dependents(now) if c.resource == resource]
    return dict(found.body)


def test_launcher_environment_has_a_fixed_order() -> None:
    (container,) = pod_spec(manifest(), LAUNCHER)["containers"]
    assert [(variable["name"], variable["value"]) for variable in container["env"]] == [
        ("OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh"),
        ("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"),
        ("NVIDIA_VISIBLE_DEVICES", ""),
        ("NVIDIA_DRIVER_CAPABILITIES", ""),
        ("I_MPI_HYDRA_BOOTSTRAP", "rsh"),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC", "/etc/mpi/kubexec.sh"),
    ]


def test_users_bootstrap_is_kept() -> None:
    wire = manifest(launcher=template("mpi")["spec"])
    (container,) = wire["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "ssh"}]
    (rendered,) = pod_spec(wire, LAUNCHER)["containers"]
    names = [variable["name"] for variable in rendered["env"]]
    assert names[0] == "I_MPI_HYDRA_BOOTSTRAP"
    assert names.count("I_MPI_HYDRA_BOOTSTRAP") == 1
    assert names[-1] == "I_MPI_HYDRA_BOOTSTRAP_EXEC"


def test_only_the_first_container_is_mutated_whatever_its_name() -> None:
    first, second = pod_spec(manifest(launcher=template("horovod", "mpi")["spec"]), LAUNCHER)[
        "containers"
    ]
    assert "env" in first
    assert "volumeMounts" in first
    assert {"env", "volumeMounts"}.isdisjoint(second)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "aliyun.com/gpu-mem"])
def test_launcher_that_requests_gpus_is_a_host_and_sees_them(resource: str) -> None:
    wire = manifest(workers=1, launcher=template("mpi")["spec"])
    (container,) = wire["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {resource: 1}}
    (rendered,) = pod_spec(wire, LAUNCHER)["containers"]
    assert not [v for v in rendered["env"] if v["name"].startswith("NVIDIA")]
    files = running(make_job(wire), 0)
    assert files["hostfile"] == "linear-launcher slots=1\nlinear-worker-0 slots=1\n"
    # The empty line is training-operator's.
    script = "#!/bin/sh\necho linear-launcher:1\n\necho linear-worker-0:1"
    assert files["discover_hosts.sh"] == script


def test_launcher_gets_kubectl_from_the_configured_image() -> None:
    wire = manifest()
    defaults = JobDefaults(framework_settings=(KubectlDelivery("registry/delivery:2"),))
    renderer = renderer_of(wire)
    renderer = attrs.evolve(renderer, job=attrs.evolve(renderer.job, defaults=defaults))
    spec = renderer.pod(LAUNCHER)["spec"]
    (delivery,) = spec["initContainers"]
    size = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
    assert delivery["image"] == "registry/delivery:2"
    assert delivery["resources"] == {"limits": size, "requests": size}
    assert [(v["name"], v["value"]) for v in delivery["env"]] == [
        ("TARGET_DIR", "/opt/kube"),
        ("NAMESPACE", "ml"),
    ]
    assert [mount["mountPath"] for mount in delivery["volumeMounts"]] == ["/opt/kube", "/etc/mpi"]


def test_files_are_mounted_with_the_modes_for_mpirun() -> None:
    volumes = {v["name"]: v for v in pod_spec(manifest(), LAUNCHER)["volumes"]}
    assert volumes["mpi-job-kubectl"]["emptyDir"] == {}
    items = volumes["mpi-job-config"]["configMap"]["items"]
    assert {item["path"]: oct(item["mode"]) for item in items} == {
        "kubexec.sh": "0o555",
        "hostfile": "0o444",
        "discover_hosts.sh": "0o555",
    }


def test_worker_sleeps_unless_it_has_a_command() -> None:
    wire = manifest(workers=1)
    (container,) = pod_spec(wire, WORKER)["containers"]
    assert [*container["command"], *container["args"]] == ["sleep", "365d"]
    assert container["volumeMounts"] == [{"name": "mpi-job-config", "mountPath": "/etc/mpi"}]
    assert "env" not in container

    own = wire["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    own["command"] = ["/usr/sbin/sshd"]
    (container,) = pod_spec(wire, WORKER)["containers"]
    assert container["command"] == ["/usr/sbin/sshd"]
    assert "args" not in container


def test_files_contain_the_hosts_and_the_remote_shell() -> None:
    files = running(make_job(manifest(slotsPerWorker=4)), 0, 1)
    assert files["hostfile"] == "linear-worker-0 slots=4\nlinear-worker-1 slots=4\n"
    assert files["kubexec.sh"] == (
        "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n"
        '/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"'
    )


def test_remote_processes_start_in_the_named_main_container() -> None:
    files = running(make_job(manifest(mainContainer="horovod")))
    assert "kubectl exec ${POD_NAME} --container horovod -- /bin/sh" in files["kubexec.sh"]


def test_hosts_to_discover_are_sorted_by_name() -> None:
    files = running(make_job(manifest(workers=11)), 10, 2)
    assert (
        files["discover_hosts.sh"] == "#!/bin/sh\necho linear-worker-10:1\necho linear-worker-2:1"
    )


def test_files_are_not_rewritten_as_each_worker_starts() -> None:
    job = make_job(manifest(workers=3))
    started = [running(job, *range(count), phase=JobPhase.CREATING) for count in range(4)]
    assert started[0] == started[1] == started[2]
    assert started[3]["discover_hosts.sh"].count("echo") == 3


def test_launcher_may_exec_in_its_workers_only() -> None:
    rules = body(make_job(manifest()), ROLES)["rules"]
    assert rules[1]["resourceNames"] == ["linear-worker-0", "linear-worker-1"]
    # A rule without names would apply to everything.
    assert len(body(make_job(manifest(workers=0)), ROLES)["rules"]) == 1


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
def test_users_service_account_is_used(field: str) -> None:
    wire = manifest(launcher={field: "trainer"})
    job = make_job(wire)
    assert pod_spec(wire, LAUNCHER)["serviceAccountName"] == "trainer"
    assert body(job, ROLE_BINDINGS)["subjects"][0]["name"] == "trainer"
    accounts = [d for d in MPIJob(job).dependents([]) if d.resource == SERVICE_ACCOUNTS]
    assert [(one.name, one.may_be_shared) for one in accounts] == [("trainer", True)]


def test_dependents_are_labelled_with_the_job_name() -> None:
    dependents = list(MPIJob(make_job(manifest())).dependents([]))
    assert [(c.resource.kind, c.name) for c in dependents] == [
        ("Role", "linear-launcher"),
        ("ServiceAccount", "linear-launcher"),
        ("RoleBinding", "linear-launcher"),
        ("ConfigMap", "linear-config"),
    ]
    assert all(c.body["metadata"]["labels"] == {"app": "linear"} for c in dependents)


def test_there_are_no_services_and_no_port() -> None:
    renderer = renderer_of(manifest())
    assert list(renderer.replicas_with_service()) == []
    assert all("ports" not in renderer.pod(r)["spec"]["containers"][0] for r in (LAUNCHER, WORKER))


def test_launcher_has_no_index() -> None:
    labels = renderer_of(manifest()).pod(LAUNCHER)["metadata"]["labels"]
    assert labels["training.kubeflow.org/job-role"] == "master"
    assert "training.kubeflow.org/replica-index" not in labels


def test_launcher_is_gated_only_if_there_are_workers() -> None:
    gate = [{"name": "dlctl.dev/workers-running"}]
    assert pod_spec(manifest(), LAUNCHER)["schedulingGates"] == gate
    assert "schedulingGates" not in pod_spec(manifest(workers=0), LAUNCHER)
    # The server rejects pods with both a node name and gates.
    assert "schedulingGates" not in pod_spec(manifest(launcher={"nodeName": "n1"}), LAUNCHER)
    assert "schedulingGates" not in pod_spec(manifest(), WORKER)


def test_users_gates_come_first() -> None:
    own = {"name": "example.com/quota"}
    gates = pod_spec(manifest(launcher={"schedulingGates": [own]}), LAUNCHER)["schedulingGates"]
    assert gates == [own, {"name": "dlctl.dev/workers-running"}]


def test_there_are_no_workers_by_default_and_one_launcher() -> None:
    wire = manifest()
    for entry in wire["spec"]["mpiReplicaSpecs"].values():
        del entry["replicas"]
    assert list(make_job(wire).replicas) == [LAUNCHER]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"Worker": {"template": template("mpi")}}, "lists no Launcher"),
        ({"Launcher": {"replicas": 2, "template": template("mpi")}}, "exactly 1 Launcher"),
        ({"Master": {"template": template("mpi")}}, "one of Launcher, Worker"),
    ],
)
def test_job_without_exactly_one_launcher_is_invalid(specs: JSON, message: str) -> None:
    with pytest.raises(InvalidJobError, match=message):
        make_job(manifest(mpiReplicaSpecs=specs))


def test_run_policy_wins_over_the_clean_pod_policy_of_the_spec() -> None:
    wire = manifest(cleanPodPolicy="Running")
    assert make_job(wire).run_policy.clean_pod_policy is CleanPodPolicy.RUNNING
    wire["spec"]["runPolicy"] = {"cleanPodPolicy": "All"}
    assert make_job(wire).run_policy.clean_pod_policy is CleanPodPolicy.ALL
    assert make_job(manifest()).run_policy.clean_pod_policy is CleanPodPolicy.NONE


def test_launcher_decides() -> None:
    policy = make_job(manifest()).success_policy
    assert (policy.success_replicas, policy.running_replicas) == ((LAUNCHER,), (LAUNCHER,))
    assert make_job(manifest()).status == JobStatus(version="v1")


def test_container_name_is_quoted_in_scripts() -> None:
    wire = manifest()
    wire["spec"]["mainContainer"] = "main; rm -rf /"
    files = renderer_of(wire).framework.dependents(())
    (data,) = (each.body["data"] for each in files if "data" in each.body)
    assert "exec ${POD_NAME} --container 'main; rm -rf /' --" in data["kubexec.sh"]


@pytest.mark.parametrize("slots", ["1; reboot", True, -1, 1.5])
def test_non_numeric_slots_are_rejected(slots: Any) -> None:
    wire = manifest()
    wire["spec"]["slotsPerWorker"] = slots
    with pytest.raises(InvalidJobError, match=r"spec\.slotsPerWorker: (must be an integer|is -1)"):
        list(renderer_of(wire).framework.dependents(()))


@pytest.mark.parametrize("resources", ["x", {"limits": 5}, {"limits": ["gpu"]}])
def test_malformed_resources_are_rejected(resources: Any) -> None:
    wire = manifest()
    (container,) = wire["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    container["resources"] = resources
    with pytest.raises(InvalidJobError, match=r"containers\[0\]\.resources.*: must be an object"):
        renderer_of(wire)


def ganged_spec(wire: JSON) -> JSON:
    """Return the launcher's pod spec under gang scheduling."""
    renderer = renderer_of(wire)
    defaults = attrs.evolve(renderer.job.defaults, gang_scheduler_name="volcano")
    renderer = attrs.evolve(renderer, job=attrs.evolve(renderer.job, defaults=defaults))
    return dict(renderer.pod(LAUNCHER)["spec"])


def test_launcher_of_a_gang_waits_for_its_workers_in_its_own_image() -> None:
    wire = manifest(launcher=template("mpi")["spec"])
    (container,) = wire["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    container.update(image="mine:1", securityContext={"runAsNonRoot": True}, env=[])
    delivery, wait = ganged_spec(wire)["initContainers"]
    assert delivery["name"] == "kubectl-delivery"
    assert (wait["image"], wait["securityContext"]) == ("mine:1", {"runAsNonRoot": True})
    assert [m["mountPath"] for m in wait["volumeMounts"]] == ["/opt/kube", "/etc/mpi"]
    assert wait["resources"] == delivery["resources"]


def test_launcher_without_workers_or_with_a_gate_has_no_init_container() -> None:
    for spec in (ganged_spec(manifest(workers=0)), pod_spec(manifest(), LAUNCHER)):
        assert [c["name"] for c in spec["initContainers"]] == ["kubectl-delivery"]


def test_launcher_of_a_gang_waits_for_all_hosts_except_itself(tmp_path: Path) -> None:
    *_, wait = ganged_spec(manifest())["initContainers"]
    shell, flag, script = wait["command"]
    calls = tmp_path / "calls"
    (tmp_path / "kubectl").write_text(
        # At the first call a worker does not exist yet.
        f'#!/bin/sh\necho "$@" >> {calls}\n[ "$(wc -l < {calls})" -ge 2 ]\n'
    )
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "hostfile").write_text("linear-launcher slots=1\na-0 slots=2\na-1 slots=2\n")
    for path in ("/opt/kube", "/etc/mpi"):
        script = script.replace(path, str(tmp_path))
    script = script.replace("sleep 5", "sleep 0")
    ran = subprocess.run([shell, flag, script], capture_output=True, timeout=20, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    call = "wait --for=jsonpath={.status.phase}=Running --timeout=5m pod/a-0 pod/a-1"
    assert calls.read_text().splitlines() == [call] * 2
