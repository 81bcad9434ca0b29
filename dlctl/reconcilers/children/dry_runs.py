"""Dry runs of pods: which of them the server would reject.

Only a creation shows whether it is rejected: webhooks may not complete a pod in a dry run.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.controller.object_writer import MAX_PARALLEL
from dlctl.errors import InvalidJobError
from dlctl.kube.client import Client
from dlctl.kube.errors import ApiError, RequestError
from dlctl.reconcilers.children.rejection import rejection_of
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.content_errors import ContentError, Step, wrap_content_errors
from dlctl.tasks import map_all

_ALL: Final = {"dryRun": "All"}
# The server's message about a webhook that has side effects.
_UNSUPPORTED: Final = "does not support dry run"


async def rejected_by_dry_run(
    client: Client, job: Job, replicas: Sequence[Replica], renderer: Renderer
) -> list[Replica]:
    """Return the replicas whose pods would be rejected.

    An error that is not about the pod is ignored: the creation meets it, too.
    """
    rejected: list[Replica] = []

    def render(replica: Replica) -> JSON:
        with wrap_content_errors(Step.RENDERING):
            return renderer.pod(replica)

    async def try_one(replica: Replica) -> None:
        try:
            await client.create(PODS, job.key.namespace, partial(render, replica), params=_ALL)
        except (ContentError, InvalidJobError):
            rejected.append(replica)
        except ApiError as error:
            rejection = rejection_of(PODS, job.child_name(replica), error)
            if rejection is not None and _UNSUPPORTED not in str(error):
                rejected.append(replica)
        except RequestError:
            pass

    await map_all(try_one, replicas, limit=MAX_PARALLEL)
    return rejected
