"""Pod specs of elastic jobs: et-operator's, with deliberate differences."""

from typing import Any

import attrs
import pytest

from dlctl.api.defaults import JobDefaults
from dlctl.api.policies.elasticity import AttachMode
from dlctl.errors import InvalidJobError
from dlctl.frameworks.horovod.hostfile_init import HostfileInit, init_script
from dlctl.frameworks.launcher_access import KubectlDelivery
from tests.frameworks.horovod.builders import LAUNCHER, WORKER, elastic, mutated_pod_spec, pod

# et-operator's command, but with a handler of SIGTERM.
SLEEP = "sleep 365d & trap 'kill $!' TERM; wait $!"
SIZE = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
SIZES = {"limits": SIZE, "requests": SIZE}
ROOT_HOME = "/root"
SSH_DIRECTORY = f"{ROOT_HOME}/.ssh"
SSH_MOUNT = {"name": "training-job-ssh", "mountPath": SSH_DIRECTORY, "subPath": ".ssh"}
FILES_MOUNTS = [
    {"name": "training-job-hostfile", "mountPath": "/etc/edl"},
    {"name": "training-job-config", "mountPath": "/etc/mpi"},
    {"name": "training-job-kubectl", "mountPath": "/opt/kube"},
    {"name": "deepspeed-hostfile", "mountPath": "/job"},
]
VOLUMES: list[dict[str, Any]] = [
    {"name": "training-job-hostfile", "emptyDir": {}},
    {"name": "deepspeed-hostfile", "emptyDir": {}},
    {"name": "training-job-kubectl", "emptyDir": {}},
    {
        "name": "training-job-config",
        "configMap": {
            "name": "et-config",
            "items": [
                {"key": "hostfile", "path": "hostfile", "mode": 0o444},
                {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o444},
                {"key": "kubexec.sh", "path": "kubexec.sh", "mode": 0o555},
                {"key": "deepspeed-hostfile", "path": "deepspeed-hostfile", "mode": 0o444},
            ],
        },
    },
]
STEP = {
    "name": "init-hostfile",
    "image": "alpine:3.10",
    "imagePullPolicy": "IfNotPresent",
    "resources": SIZES,
    "volumeMounts": [
        {"name": "training-job-hostfile", "mountPath": "/etc/edl"},
        {"name": "deepspeed-hostfile", "mountPath": "/job"},
        {"name": "training-job-config", "mountPath": "/etc/mpi"},
    ],
}


def keys(*files: tuple[str, str], secret: str = "et", mode: int = 0o600) -> dict[str, Any]:
    items = [{"key": key, "path": f".ssh/{path}"} for key, path in files]
    return {
        "name": "training-job-ssh",
        "secret": {"secretName": secret, "defaultMode": mode, "items": items},
    }


ALL_KEYS = keys(
    ("id_rsa", "id_rsa"),
    ("id_rsa.pub", "id_rsa.pub"),
    ("id_rsa.pub", "authorized_keys"),
    ("config", "config"),
)
PUBLIC_KEY = keys(("id_rsa.pub", "authorized_keys"))


def test_ssh_launcher_is_that_of_et_operator() -> None:
    assert mutated_pod_spec(elastic(), LAUNCHER) == {
        "restartPolicy": "Never",
        "serviceAccountName": "et-launcher",
        "initContainers": [{**STEP, "command": ["sh", "-c", init_script(uses_ssh=True)]}],
        "containers": [
            {"name": "main", "image": "hvd:1", "volumeMounts": [*FILES_MOUNTS, SSH_MOUNT]}
        ],
        "volumes": [*VOLUMES, ALL_KEYS],
    }


def test_kubexec_launcher_gets_kubectl_and_its_environment() -> None:
    delivery = {
        "name": "kubectl-delivery",
        "image": "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest",
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "TARGET_DIR", "value": "/opt/kube"},
            {"name": "NAMESPACE", "value": "ml"},
        ],
        "resources": SIZES,
        "volumeMounts": [{"name": "training-job-kubectl", "mountPath": "/opt/kube"}],
    }
    agent = {"name": "OMPI_MCA_plm_rsh_agent", "value": "/etc/mpi/kubexec.sh"}
    assert mutated_pod_spec(elastic(attach=AttachMode.KUBEXEC), LAUNCHER) == {
        "restartPolicy": "Never",
        "serviceAccountName": "et-launcher",
        "initContainers": [
            delivery,
            {**STEP, "command": ["sh", "-c", init_script(uses_ssh=False)]},
        ],
        "containers": [
            {"name": "main", "image": "hvd:1", "volumeMounts": FILES_MOUNTS, "env": [agent]}
        ],
        "volumes": VOLUMES,
    }


def test_ssh_worker_holds_no_private_key() -> None:
    assert mutated_pod_spec(elastic(), WORKER) == {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": "hvd:1",
                "command": ["sh", "-c", f"/usr/sbin/sshd  && {{ {SLEEP}; }}"],
                "volumeMounts": [SSH_MOUNT],
            }
        ],
        "volumes": [PUBLIC_KEY],
    }


def test_kubexec_worker_only_sleeps() -> None:
    assert mutated_pod_spec(elastic(attach=AttachMode.KUBEXEC), WORKER) == {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "hvd:1", "command": ["sh", "-c", SLEEP]}],
    }


def test_worker_with_its_own_command_keeps_it_and_its_grace_period() -> None:
    own = pod(restartPolicy="Always")
    own["containers"][0]["command"] = ["/start"]
    spec = mutated_pod_spec(elastic(worker=own), WORKER)
    assert spec["containers"][0]["command"] == ["/start"]
    assert spec["restartPolicy"] == "Never"
    assert "terminationGracePeriodSeconds" not in spec


def test_users_grace_period_is_kept() -> None:
    spec = mutated_pod_spec(elastic(worker=pod(terminationGracePeriodSeconds=0)), WORKER)
    assert spec["terminationGracePeriodSeconds"] == 0


def test_arguments_are_unchanged() -> None:
    own = pod()
    own["containers"][0]["args"] = ["x"]
    (container,) = mutated_pod_spec(elastic(worker=own), WORKER)["containers"]
    assert (container["command"][0], container["args"]) == ("sh", ["x"])


def test_files_are_in_the_first_container_and_keys_in_all() -> None:
    first, second = mutated_pod_spec(elastic(launcher=pod("main", "board")), LAUNCHER)["containers"]
    assert first["volumeMounts"] == [*FILES_MOUNTS, SSH_MOUNT]
    assert second == {"name": "board", "image": "hvd:1", "volumeMounts": [SSH_MOUNT]}
    _, second = mutated_pod_spec(elastic(worker=pod("main", "board")), WORKER)["containers"]
    assert second == {"name": "board", "image": "hvd:1", "volumeMounts": [SSH_MOUNT]}


def test_users_volumes_init_containers_and_account_are_merged() -> None:
    own = pod(
        serviceAccountName="mine",
        initContainers=[{"name": "fetch"}],
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    own["containers"][0]["volumeMounts"] = [
        {"name": "data", "mountPath": "/job"},
        {"name": "data", "mountPath": SSH_DIRECTORY},
    ]
    spec = mutated_pod_spec(elastic(launcher=own), LAUNCHER)
    assert spec["serviceAccountName"] == "et-launcher"
    assert [step["name"] for step in spec["initContainers"]] == ["fetch", "init-hostfile"]
    assert spec["volumes"] == [{"name": "data", "emptyDir": {}}, *VOLUMES, ALL_KEYS]
    mounts = spec["containers"][0]["volumeMounts"]
    # The server accepts one mount per path.
    assert [mount["mountPath"] for mount in mounts] == [
        "/job",
        SSH_DIRECTORY,
        "/etc/edl",
        "/etc/mpi",
        "/opt/kube",
    ]


def test_users_remote_shell_is_kept() -> None:
    own = pod()
    own["containers"][0]["env"] = [{"name": "OMPI_MCA_plm_rsh_agent", "value": "/mine"}]
    spec = mutated_pod_spec(elastic(attach=AttachMode.KUBEXEC, launcher=own), LAUNCHER)
    assert spec["containers"][0]["env"] == own["containers"][0]["env"]


@pytest.mark.parametrize("replica", [LAUNCHER, WORKER])
def test_named_secret_is_mounted(replica: Any) -> None:
    framework = elastic(annotations={"arena.kubeflow.org/ssh-secret": "my.keys"})
    *_, volume = mutated_pod_spec(framework, replica)["volumes"]
    # An invalid volume name.
    assert (volume["name"], volume["secret"]["secretName"]) == ("training-job-ssh", "my.keys")


def test_workers_that_log_in_to_each_other_get_all_keys() -> None:
    framework = elastic(annotations={"dlctl.dev/ssh-between-workers": "true"})
    assert mutated_pod_spec(framework, WORKER)["volumes"] == [ALL_KEYS]
    framework = elastic(annotations={"dlctl.dev/ssh-between-workers": "false"})
    assert mutated_pod_spec(framework, WORKER)["volumes"] == [PUBLIC_KEY]


def test_non_root_programs_can_read_the_keys() -> None:
    framework = elastic(annotations={"dlctl.dev/ssh-home": "/home/me/"})
    spec = mutated_pod_spec(framework, WORKER)
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/home/me/.ssh"
    assert spec["volumes"][0]["secret"]["defaultMode"] == 0o444


@pytest.mark.parametrize("home", ["home/me", "~", "/a:/b"])
def test_invalid_home_is_rejected(home: str) -> None:
    framework = elastic(annotations={"dlctl.dev/ssh-home": home})
    with pytest.raises(InvalidJobError, match=r"annotations\[dlctl.dev/ssh-home\]"):
        mutated_pod_spec(framework, LAUNCHER)


def test_images_of_the_settings_are_used() -> None:
    framework = elastic(attach=AttachMode.KUBEXEC)
    defaults = JobDefaults(framework_settings=(KubectlDelivery("d"), HostfileInit("i")))
    framework = type(framework)(attrs.evolve(framework.job, defaults=defaults))
    steps = mutated_pod_spec(framework, LAUNCHER)["initContainers"]
    assert [step["image"] for step in steps] == ["d", "i"]


def test_template_is_not_changed() -> None:
    own = pod()
    framework = elastic(launcher=own, worker=own)
    for replica in (LAUNCHER, WORKER):
        mutated_pod_spec(framework, replica)
    assert own == pod()
