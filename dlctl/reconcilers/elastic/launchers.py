"""Errands, carried out in launchers."""

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.kube.client import Client
from dlctl.reconcilers.elastic.errands import Errand


@attrs.frozen
class Launchers:
    """Carries errands out."""

    client: Client

    async def perform(self, owner: ObjectKey, errand: Errand) -> object:
        raise NotImplementedError
