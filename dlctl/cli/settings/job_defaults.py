"""The administrator's defaults for all jobs, from the settings of the controller."""

from pathlib import Path
from typing import Final

from dlctl.api.defaults import JobDefaults
from dlctl.errors import ConfigError
from dlctl.frameworks.horovod.hostfile_init import HostfileInit
from dlctl.frameworks.kubeflow.pytorch_init import PyTorchInit
from dlctl.frameworks.launcher_access import KubectlDelivery
from dlctl.options import INIT_TEMPLATE_FILE, Options

_NO_SCHEDULER: Final = "none"


def job_defaults(options: Options) -> JobDefaults:
    """Return the defaults from the options; reads the template file that they name.

    :raises ConfigError: if the template file cannot be read.
    """
    gang = options.gang_scheduler_name.strip()
    return JobDefaults(
        cluster_domain=options.cluster_domain,
        gang_scheduler_name="" if gang.lower() == _NO_SCHEDULER else gang,
        framework_settings=(
            PyTorchInit(
                options.pytorch_init_container_image,
                _read_template(options.pytorch_init_container_template_file),
                options.pytorch_init_container_max_tries,
            ),
            KubectlDelivery(options.mpi_kubectl_delivery_image),
            HostfileInit(options.elastic_init_container_image),
        ),
    )


def _read_template(name: str) -> str:
    if not name or (name == INIT_TEMPLATE_FILE and not Path(name).exists()):
        return ""
    try:
        return Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--pytorch-init-container-template-file {name}: {error}") from error
