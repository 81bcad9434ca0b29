"""The administrator's defaults for all jobs, used where a job does not set its own.

Read once, at start. Frameworks and dialects get them as a value, independent of flags and files.
"""

from typing import Final

import attrs

from dlctl.options import Options

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
