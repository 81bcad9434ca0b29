"""Check at startup that the cluster serves the PodGroups of the gang scheduler.

Without them no job would ever get a pod, and nothing would say why.
"""

import logging

from dlctl.api.objects.pod_groups import pod_group_resource
from dlctl.errors import ConfigError, DlctlError
from dlctl.kube.client import Client
from dlctl.kube.discovery import served_resources

logger = logging.getLogger(__name__)


async def check_pod_groups(client: Client, scheduler: str) -> None:
    """Check that the scheduler's PodGroups are served.

    :raises ConfigError: if they are not.
    """
    groups = pod_group_resource(scheduler)
    if groups is None:
        return
    try:
        served = await served_resources(client, groups.api_version)
    except DlctlError as error:
        # They may be served all the same; the informers keep trying.
        logger.warning("cannot ask for PodGroups", extra={"reason": str(error)})
        return
    if groups.plural not in {resource.name for resource in served}:
        raise ConfigError(
            f"--gang-scheduler-name is {scheduler!r}, but the cluster does not serve "
            f"{groups.group_resource} at version {groups.version}: install the scheduler and its "
            "CustomResourceDefinitions, or unset the flag"
        )
