"""Pod specs of MPI jobs: changes to the user's templates. Pure: pod specs in and out.

The names, order and modes are training-operator's: users' scripts rely on them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.frameworks import launcher_access
from dlctl.frameworks.kubeflow.mpi_config import (
    CONFIG_PATH,
    CONFIG_VOLUME,
    DISCOVER_HOSTS,
    EXECUTABLE,
    HOSTFILE,
    KUBEXEC,
    READABLE,
    config_volume,
)
from dlctl.frameworks.launcher_access import KUBECTL_PATH, init_resources
from dlctl.frameworks.pod_changes import append_items, append_to_first

_KUBECTL_VOLUME: Final = "mpi-job-kubectl"
# The fields that another container of the same image needs.
_IMAGE_FIELDS: Final = ("image", "imagePullPolicy")
# One kubectl process watches all workers; it is repeated on failure, for example while a worker is
# replaced.
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
_MOUNT_PATH_BY_VOLUME: Final = {_KUBECTL_VOLUME: KUBECTL_PATH, CONFIG_VOLUME: CONFIG_PATH}


def worker(pod_spec: ReadOnlyJSON, config: str) -> ReadOnlyJSON:
    """Return the spec of a worker: without its own command, it sleeps."""
    container, *others = pod_spec["containers"]
    if not container.get("command"):
        container = {**container, "command": ["sleep"], "args": ["365d"]}
    spec = {**pod_spec, "containers": [container, *others]}
    # Open MPI looks for its remote shell in every rank.
    volume = config_volume(config, {KUBEXEC: EXECUTABLE})
    return append_items(
        append_to_first(spec, volumeMounts=_mounts(CONFIG_VOLUME)), volumes=[volume]
    )


def launcher(
    pod_spec: ReadOnlyJSON, config: str, *, init_containers: Sequence[ReadOnlyJSON]
) -> ReadOnlyJSON:
    """Return the spec of a launcher, with everything that mpirun needs in its first container.

    ``init_containers`` run after the user's.
    """
    environment = _environment(pod_spec["containers"][0], for_gpu=uses_gpu(pod_spec))
    variables = [{"name": name, "value": value} for name, value in environment]
    modes = {KUBEXEC: EXECUTABLE, HOSTFILE: READABLE, DISCOVER_HOSTS: EXECUTABLE}
    volumes = [{"name": _KUBECTL_VOLUME, "emptyDir": {}}, config_volume(config, modes)]
    spec = append_to_first(pod_spec, env=variables, volumeMounts=_mounts(*_MOUNT_PATH_BY_VOLUME))
    return append_items(spec, initContainers=init_containers, volumes=volumes)


def kubectl_init_container(image: str, namespace: str) -> ReadOnlyJSON:
    """Return the init container that provides kubectl."""
    return launcher_access.kubectl_init_container(image, namespace, _mounts(*_MOUNT_PATH_BY_VOLUME))


def wait_for_workers(pod_spec: ReadOnlyJSON, launcher: str) -> ReadOnlyJSON:
    """Return the init container that ends when all workers in the host file run.

    It uses the launcher's image, in which mpirun needs a shell anyway.
    """
    container, *_ = pod_spec["containers"]
    image_fields = {field: container[field] for field in _IMAGE_FIELDS if field in container}
    return {
        "name": "wait-for-workers",
        **image_fields,
        "command": ["/bin/sh", "-c", _WAIT_SCRIPT.format(launcher=launcher)],
        "resources": init_resources(),
        "volumeMounts": _mounts(*_MOUNT_PATH_BY_VOLUME),
    }


def uses_gpu(pod_spec: ReadOnlyJSON) -> bool:
    """Return whether the launcher computes as well, which is assumed if it requests a GPU."""
    resources = (container.get("resources") for container in pod_spec.get("containers") or ())
    # Malformed resources are left to the API server, which rejects the pod.
    limits = (each.get("limits") for each in resources if isinstance(each, Mapping))
    return any("gpu" in name for each in limits if isinstance(each, Mapping) for name in each)


def _environment(container: ReadOnlyJSON, *, for_gpu: bool) -> Iterator[tuple[str, str]]:
    agent = f"{CONFIG_PATH}/{KUBEXEC}"
    yield "OMPI_MCA_plm_rsh_agent", agent
    yield "OMPI_MCA_orte_default_hostfile", f"{CONFIG_PATH}/{HOSTFILE}"
    if not for_gpu:
        # Otherwise a runtime that shows all GPUs to containers without a request makes mpirun use
        # them.
        yield "NVIDIA_VISIBLE_DEVICES", ""
        yield "NVIDIA_DRIVER_CAPABILITIES", ""
    own = {variable.get("name") for variable in container.get("env") or ()}
    for name, value in (("I_MPI_HYDRA_BOOTSTRAP", "rsh"), ("I_MPI_HYDRA_BOOTSTRAP_EXEC", agent)):
        if name not in own:
            yield name, value


def _mounts(*volumes: str) -> list[ReadOnlyJSON]:
    return [{"name": volume, "mountPath": _MOUNT_PATH_BY_VOLUME[volume]} for volume in volumes]
