"""What the pods of an MPI job get beside what their templates say. Pure: pod specs in and out.

The names, the order and the modes are training-operator's: scripts of users rely on them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dlctl.frameworks import launcher_access
from dlctl.frameworks.kubeflow.mpi_config import CONFIG_PATH, DISCOVER_HOSTS, HOSTFILE, KUBEXEC
from dlctl.frameworks.launcher_access import INIT_RESOURCES, KUBECTL_PATH, append_items

JSON = Mapping[str, Any]
_CONFIG_VOLUME: Final = "mpi-job-config"
_KUBECTL_VOLUME: Final = "mpi-job-kubectl"
_EXECUTABLE: Final = 0o555
_READABLE: Final = 0o444
# What lets an image run in another container as it does in its own.
_IMAGE_FIELDS: Final = ("image", "imagePullPolicy", "securityContext")
# One call for all, which watches each; one that fails, as while a worker is replaced, is repeated.
_WAIT_SCRIPT: Final = f"""\
set --
while read -r host _; do
  [ "$host" = "{{launcher}}" ] || set -- "$@" "pod/$host"
done < {CONFIG_PATH}/{HOSTFILE}
runs="jsonpath={{{{.status.phase}}}}=Running"
until {KUBECTL_PATH}/kubectl wait --for="$runs" --timeout=5m "$@"; do
  sleep 5
done
"""
_MOUNT_PATH_BY_VOLUME: Final = {_KUBECTL_VOLUME: KUBECTL_PATH, _CONFIG_VOLUME: CONFIG_PATH}


def worker(pod_spec: JSON, config: str) -> JSON:
    """Return the spec of a worker: without a command of its own, it sleeps."""
    container, *others = pod_spec["containers"]
    if not container.get("command"):
        container = {**container, "command": ["sleep"], "args": ["365d"]}
    # Open MPI looks for its remote shell in every rank.
    volume = _config_volume(config, {KUBEXEC: _EXECUTABLE})
    return {
        **pod_spec,
        "containers": [append_items(container, volumeMounts=_mounts(_CONFIG_VOLUME)), *others],
        "volumes": [*(pod_spec.get("volumes") or []), volume],
    }


def launcher(pod_spec: JSON, config: str, *, init_containers: Sequence[JSON]) -> JSON:
    """Return the spec of the launcher: all that mpirun needs is in its first container.

    ``steps`` are init containers, which run after those of the user.
    """
    container, *others = pod_spec["containers"]
    variables = [
        {"name": name, "value": value}
        for name, value in _environment(container, uses_gpu(pod_spec))
    ]
    modes = {KUBEXEC: _EXECUTABLE, HOSTFILE: _READABLE, DISCOVER_HOSTS: _EXECUTABLE}
    volumes = [{"name": _KUBECTL_VOLUME, "emptyDir": {}}, _config_volume(config, modes)]
    return {
        **pod_spec,
        "initContainers": [*(pod_spec.get("initContainers") or []), *init_containers],
        "containers": [
            append_items(container, env=variables, volumeMounts=_mounts(*_MOUNT_PATH_BY_VOLUME)),
            *others,
        ],
        "volumes": [*(pod_spec.get("volumes") or []), *volumes],
    }


def kubectl_init_container(image: str, namespace: str) -> JSON:
    """Return the init container that brings kubectl."""
    return launcher_access.kubectl_init_container(image, namespace, _mounts(*_MOUNT_PATH_BY_VOLUME))


def wait_for_workers(pod_spec: JSON, launcher: str) -> JSON:
    """Return the init container that ends when all workers in the host file run.

    It has the image of the launcher itself, in which mpirun needs a shell as well.
    """
    container, *_ = pod_spec["containers"]
    image_fields = {field: container[field] for field in _IMAGE_FIELDS if field in container}
    return {
        "name": "wait-for-workers",
        **image_fields,
        "command": ["/bin/sh", "-c", _WAIT_SCRIPT.format(launcher=launcher)],
        "resources": {"limits": dict(INIT_RESOURCES), "requests": dict(INIT_RESOURCES)},
        "volumeMounts": _mounts(*_MOUNT_PATH_BY_VOLUME),
    }


def uses_gpu(pod_spec: JSON) -> bool:
    """Tell whether the launcher is to compute, too: it asks for a GPU."""
    resources = (container.get("resources") for container in pod_spec.get("containers") or ())
    # What is malformed is the API server's to refuse, with the pod.
    limits = (each.get("limits") for each in resources if isinstance(each, Mapping))
    return any("gpu" in name for each in limits if isinstance(each, Mapping) for name in each)


def _environment(container: JSON, gpu: bool) -> Iterator[tuple[str, str]]:
    agent = f"{CONFIG_PATH}/{KUBEXEC}"
    yield "OMPI_MCA_plm_rsh_agent", agent
    yield "OMPI_MCA_orte_default_hostfile", f"{CONFIG_PATH}/{HOSTFILE}"
    if not gpu:
        # A runtime that shows all GPUs to who asks for none would make mpirun use them.
        yield "NVIDIA_VISIBLE_DEVICES", ""
        yield "NVIDIA_DRIVER_CAPABILITIES", ""
    own = {variable.get("name") for variable in container.get("env") or ()}
    for name, value in (("I_MPI_HYDRA_BOOTSTRAP", "rsh"), ("I_MPI_HYDRA_BOOTSTRAP_EXEC", agent)):
        if name not in own:
            yield name, value


def _mounts(*volumes: str) -> list[JSON]:
    return [{"name": volume, "mountPath": _MOUNT_PATH_BY_VOLUME[volume]} for volume in volumes]


def _config_volume(config: str, modes: Mapping[str, int]) -> JSON:
    items = [{"key": name, "path": name, "mode": mode} for name, mode in modes.items()]
    return {"name": _CONFIG_VOLUME, "configMap": {"name": config, "items": items}}
