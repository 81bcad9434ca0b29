"""Pods, files, key and service of MPI jobs over SSH, as mpi-operator's users know them."""

import base64
from typing import Any, Final

import attrs
import pytest

from dlctl.api.job import Replica
from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS
from dlctl.reconcilers.children.renderer import Renderer
from tests.builders import renderer_of, template
from tests.mpi_v2beta1 import mpi_job

LAUNCHER: Final = Replica("launcher", 0)
WORKER: Final = Replica("worker", 0)
NO_GPUS: Final = ["NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"]


def pod_spec(wire: JSON, replica: Replica) -> JSON:
    return dict(renderer_of(wire).pod(replica)["spec"])


def first_container(wire: JSON, replica: Replica) -> JSON:
    return dict(pod_spec(wire, replica)["containers"][0])


def with_defaults(wire: JSON, **settings: Any) -> Renderer:
    """Return the renderer of a job in a cluster with these settings."""
    renderer = renderer_of(wire)
    defaults = attrs.evolve(renderer.job.defaults, **settings)
    return attrs.evolve(renderer, job=attrs.evolve(renderer.job, defaults=defaults))


def in_domain(wire: JSON, domain: str) -> Renderer:
    return with_defaults(wire, cluster_domain=domain)


def files(renderer: Renderer, *running: Replica) -> JSON:
    """Return the configuration files while these replicas run."""
    (found,) = [d for d in renderer.dependents(running) if d.resource == CONFIG_MAPS]
    assert found.name == "pi-config"
    assert found.body["metadata"] == {"labels": {"app": "pi"}}
    return dict(found.body["data"])


def workers(*indexes: int) -> list[Replica]:
    return [Replica("worker", index) for index in indexes]


@pytest.mark.parametrize(
    ("implementation", "expected"),
    [
        pytest.param(
            {},
            {
                "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
                "OMPI_MCA_orte_set_default_slots": "4",
            },
            id="default",
        ),
        pytest.param(
            {"mpiImplementation": "Intel"},
            {
                "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
                "I_MPI_PERHOST": "4",
            },
            id="Intel",
        ),
        pytest.param(
            {"mpiImplementation": "MPICH"},
            {
                "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10",
            },
            id="MPICH",
        ),
    ],
)
def test_launcher_has_the_environment_of_its_implementation(
    implementation: JSON, expected: dict[str, str]
) -> None:
    env = first_container(mpi_job(slotsPerWorker=4, **implementation), LAUNCHER)["env"]
    variables = {"K_MPI_JOB_ROLE": "launcher", **expected}
    assert env == [
        *({"name": name, "value": value} for name, value in variables.items()),
        *({"name": name} for name in NO_GPUS),
    ]


def test_launcher_among_the_workers_sees_gpus() -> None:
    env = first_container(mpi_job(runLauncherAsWorker=True), LAUNCHER)["env"]
    assert not [variable for variable in env if variable["name"] in NO_GPUS]


@pytest.mark.parametrize("replica", [LAUNCHER, WORKER])
def test_variables_follow_the_users_even_of_the_same_name(replica: Replica) -> None:
    own = template("mpi", "sidecar")["spec"]
    own["containers"][0]["env"] = [{"name": "K_MPI_JOB_ROLE", "value": "mine"}]
    first, second = pod_spec(mpi_job(launcher=own, worker=own), replica)["containers"]
    assert [v["value"] for v in first["env"] if v["name"] == "K_MPI_JOB_ROLE"] == [
        "mine",
        replica.type,
    ]
    assert second == {"name": "sidecar", "image": "mxnet:1"}


def test_worker_without_command_and_arguments_runs_sshd() -> None:
    container = first_container(mpi_job(), WORKER)
    assert container["command"] == ["/usr/sbin/sshd", "-De"]
    assert container["env"] == [{"name": "K_MPI_JOB_ROLE", "value": "worker"}]


@pytest.mark.parametrize("field", ["command", "args"])
def test_worker_with_command_or_arguments_keeps_them(field: str) -> None:
    own = template("mpi")["spec"]
    own["containers"][0][field] = ["/entrypoint"]
    container = first_container(mpi_job(worker=own), WORKER)
    assert container[field] == ["/entrypoint"]
    assert ("command" in container) is (field == "command")


@pytest.mark.parametrize(
    ("path", "mode"), [("/root/.ssh", 0o600), ("/home/mpiuser/.ssh", None), ("", 0o600)]
)
@pytest.mark.parametrize("replica", [LAUNCHER, WORKER])
def test_key_is_mounted_where_ssh_looks(path: str, mode: int | None, replica: Replica) -> None:
    spec = pod_spec(mpi_job(sshAuthMountPath=path), replica)
    mount = spec["containers"][0]["volumeMounts"][0]
    assert mount == {"name": "ssh-auth", "mountPath": path or "/root/.ssh"}
    (secret,) = [v["secret"] for v in spec["volumes"] if v["name"] == "ssh-auth"]
    assert secret == {
        "secretName": "pi-ssh",
        **({} if mode is None else {"defaultMode": mode}),
        "items": [
            {"key": "ssh-privatekey", "path": "id_rsa"},
            {"key": "ssh-publickey", "path": "id_rsa.pub"},
            {"key": "ssh-publickey", "path": "authorized_keys"},
        ],
    }


def test_host_files_are_mounted_in_the_launcher_only() -> None:
    spec = pod_spec(mpi_job(), LAUNCHER)
    assert spec["containers"][0]["volumeMounts"][-1] == {
        "name": "mpi-job-config",
        "mountPath": "/etc/mpi",
    }
    (config,) = [v["configMap"] for v in spec["volumes"] if v["name"] == "mpi-job-config"]
    assert config["name"] == "pi-config"
    assert {item["path"]: item["mode"] for item in config["items"]} == {
        "hostfile": 0o444,
        "discover_hosts.sh": 0o555,
    }
    assert [v["name"] for v in pod_spec(mpi_job(), WORKER)["volumes"]] == ["ssh-auth"]


@pytest.mark.parametrize("replica", [LAUNCHER, WORKER])
def test_host_names_are_under_the_service(replica: Replica) -> None:
    own = {"hostname": "mine", "subdomain": "mine", "hostNetwork": True}
    spec = pod_spec(mpi_job(launcher=own, worker=own), replica)
    name = {LAUNCHER: "pi-launcher", WORKER: "pi-worker-0"}[replica]
    assert (spec["hostname"], spec["subdomain"]) == (name, "pi")
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_worker_resolves_the_launcher_by_its_short_name() -> None:
    own = {"dnsConfig": {"searches": ["example.com"], "options": [{"name": "ndots"}]}}
    wire = mpi_job(worker=own, launcher=own)
    dns = pod_spec(wire, WORKER)["dnsConfig"]
    assert dns == {
        "searches": ["example.com", "pi.ml.svc.cluster.local"],
        "options": [{"name": "ndots"}],
    }
    assert pod_spec(wire, LAUNCHER)["dnsConfig"] == own["dnsConfig"]
    assert "dnsPolicy" not in pod_spec(wire, WORKER)
    configured = in_domain(wire, "example.org").pod(WORKER)["spec"]["dnsConfig"]
    assert configured["searches"] == ["example.com", "pi.ml.svc.example.org"]


@pytest.mark.parametrize(
    ("fields", "domain", "expected"),
    [
        pytest.param(
            {"slotsPerWorker": 2},
            "",
            "pi-worker-0.pi.ml.svc slots=2\npi-worker-1.pi.ml.svc slots=2\n",
            id="Open MPI",
        ),
        pytest.param(
            {"mpiImplementation": "Intel"},
            "",
            "pi-worker-0.pi.ml.svc:1\npi-worker-1.pi.ml.svc:1\n",
            id="Intel",
        ),
        pytest.param(
            {"mpiImplementation": "MPICH", "runLauncherAsWorker": True},
            "",
            "pi-launcher.pi.ml.svc:1\npi-worker-0.pi.ml.svc:1\npi-worker-1.pi.ml.svc:1\n",
            id="MPICH, launcher as worker",
        ),
        pytest.param(
            {"runLauncherAsWorker": True},
            "example.org",
            "pi-launcher.pi.ml.svc.example.org slots=1\n"
            "pi-worker-0.pi.ml.svc.example.org slots=1\n"
            "pi-worker-1.pi.ml.svc.example.org slots=1\n",
            id="cluster domain",
        ),
    ],
)
def test_hostfile_lists_all_workers_whether_or_not_they_run(
    fields: JSON, domain: str, expected: str
) -> None:
    assert files(in_domain(mpi_job(**fields), domain))["hostfile"] == expected


def test_job_without_workers_has_an_empty_hostfile() -> None:
    assert files(renderer_of(mpi_job(None))) == {
        "hostfile": "",
        "discover_hosts.sh": "#!/bin/sh\n",
    }


def test_discovery_lists_running_workers_in_numeric_order() -> None:
    running = [LAUNCHER, *workers(10, 2, 0)]
    assert files(renderer_of(mpi_job(11)), *running)["discover_hosts.sh"] == (
        "#!/bin/sh\n"
        "echo pi-worker-0.pi.ml.svc\necho pi-worker-2.pi.ml.svc\necho pi-worker-10.pi.ml.svc\n"
    )


def test_discovery_lists_a_launcher_that_is_a_worker_first() -> None:
    renderer = renderer_of(mpi_job(runLauncherAsWorker=True))
    assert files(renderer, *workers(1))["discover_hosts.sh"] == (
        "#!/bin/sh\necho pi-launcher.pi.ml.svc\necho pi-worker-1.pi.ml.svc\n"
    )


def test_key_is_an_ssh_auth_secret_of_each_job() -> None:
    (secret,) = renderer_of(mpi_job()).framework.secrets()
    assert secret.name == "pi-ssh"
    assert secret.body["type"] == "kubernetes.io/ssh-auth"
    data = {name: base64.b64decode(value) for name, value in secret.body["data"].items()}
    assert list(data) == ["ssh-privatekey", "ssh-publickey"]
    assert data["ssh-privatekey"].startswith(b"-----BEGIN EC PRIVATE KEY-----\n")
    assert data["ssh-publickey"].startswith(b"ecdsa-sha2-nistp521 ")


@pytest.mark.parametrize("as_worker", [False, True])
def test_one_headless_service_without_ports(as_worker: bool) -> None:
    renderer = renderer_of(mpi_job(runLauncherAsWorker=as_worker))
    (replica,) = renderer.replicas_with_service()
    service = renderer.service(replica)
    assert service["metadata"]["name"] == "pi"
    assert service["metadata"]["labels"]["app"] == "pi"
    assert service["spec"] == {
        "clusterIP": "None",
        **({"publishNotReadyAddresses": True} if as_worker else {}),
        "selector": {
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "pi",
        },
    }


@pytest.mark.parametrize(
    ("as_worker", "launcher_index", "worker_index"), [(False, None, "1"), (True, "0", "2")]
)
def test_labels_of_pods_are_those_of_mpi_operator(
    as_worker: bool, launcher_index: str | None, worker_index: str
) -> None:
    wire = mpi_job(runLauncherAsWorker=as_worker)
    renderer = renderer_of(wire)
    prefix = "training.kubeflow.org"
    for replica, index in ((LAUNCHER, launcher_index), (Replica("worker", 1), worker_index)):
        labels = renderer.pod(replica)["metadata"]["labels"]
        own = {name: value for name, value in labels.items() if name.startswith(prefix)}
        assert own == {
            f"{prefix}/operator-name": "mpi-operator",
            f"{prefix}/job-name": "pi",
            f"{prefix}/job-role": replica.type,
            **({f"{prefix}/replica-index": index} if index is not None else {}),
        }


def test_gang_scheduler_replaces_the_one_of_the_template() -> None:
    wire = mpi_job(worker={"schedulerName": "mine"})
    renderer = with_defaults(wire, gang_scheduler_name="volcano")
    assert renderer.pod(WORKER)["spec"]["schedulerName"] == "volcano"
    assert renderer.gang.other_scheduler_types == []
    assert renderer_of(wire).pod(WORKER)["spec"]["schedulerName"] == "mine"
