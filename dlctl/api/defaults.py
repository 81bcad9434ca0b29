"""The administrator's defaults for all jobs, used where a job does not set its own.

Read once, at start. Frameworks and dialects get them as a value, independent of flags and files.
"""

from pathlib import Path
from typing import Final

import attrs

from dlctl.errors import ConfigError
from dlctl.options import INIT_TEMPLATE_FILE, Options

VOLCANO: Final = "volcano"
_NO_SCHEDULER: Final = "none"
_DEFAULT_OPTIONS: Final = Options()


@attrs.frozen(kw_only=True)
class JobDefaults:
    """The settings that shape the children of jobs."""

    # Completes replica host names; empty keeps them short, relative to the DNS search path.
    cluster_domain: str = _DEFAULT_OPTIONS.cluster_domain
    # The gang scheduler, or empty; "volcano" has its own PodGroups.
    gang_scheduler_name: str = _DEFAULT_OPTIONS.gang_scheduler_name
    pytorch_init_image: str = _DEFAULT_OPTIONS.pytorch_init_container_image
    # The text of a template; empty for the built-in one.
    pytorch_init_template: str = ""
    pytorch_init_max_tries: int = _DEFAULT_OPTIONS.pytorch_init_container_max_tries
    mpi_kubectl_delivery_image: str = _DEFAULT_OPTIONS.mpi_kubectl_delivery_image
    elastic_init_image: str = _DEFAULT_OPTIONS.elastic_init_container_image


def job_defaults(options: Options) -> JobDefaults:
    """Return the defaults from the options; reads the template file that they name.

    :raises ConfigError: if the template file cannot be read.
    """
    gang = options.gang_scheduler_name.strip()
    return JobDefaults(
        cluster_domain=options.cluster_domain,
        gang_scheduler_name="" if gang.lower() == _NO_SCHEDULER else gang,
        pytorch_init_image=options.pytorch_init_container_image,
        pytorch_init_template=_read_template(options.pytorch_init_container_template_file),
        pytorch_init_max_tries=options.pytorch_init_container_max_tries,
        mpi_kubectl_delivery_image=options.mpi_kubectl_delivery_image,
        elastic_init_image=options.elastic_init_container_image,
    )


def _read_template(name: str) -> str:
    if not name or (name == INIT_TEMPLATE_FILE and not Path(name).exists()):
        return ""
    try:
        return Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--pytorch-init-container-template-file {name}: {error}") from error
