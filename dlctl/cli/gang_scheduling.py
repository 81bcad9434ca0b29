"""Check at startup that the cluster serves the PodGroups of the gang scheduler.

Without them no job would ever get a pod, and nothing would say why.
"""

import logging

import msgspec

from dlctl.api.objects.pod_groups import pod_group_resource
from dlctl.errors import ConfigError, DlctlError
from dlctl.kube.client import Client
from dlctl.kube.errors import NotFoundError

logger = logging.getLogger(__name__)


class _Served(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    resources: list[_Served] = []


async def check_pod_groups(client: Client, scheduler: str) -> None:
    """Check that the scheduler's PodGroups are served.

    :raises ConfigError: if they are not.
    """
    groups = pod_group_resource(scheduler)
    if groups is None:
        return
    try:
        response = await client.get_raw(f"/apis/{groups.api_version}", {})
        served = msgspec.json.decode(response, type=_Group).resources
    except NotFoundError:
        served = []
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
