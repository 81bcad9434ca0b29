"""A node whose pods are run and stopped by kwok: what is left to say is how they end.

kwok lets a pod run once it is bound, does not touch it any more, and takes it away when deleted.
"""

import asyncio
from typing import Any, Final

from dlctl.api.meta import PODS
from tests.support.hollow import HollowNode, Life

JSON = dict[str, Any]
_POLL_S: Final = 0.02


class KwokNode(HollowNode):
    """Ends the pods of a real cluster as their scripts say."""

    async def _start(self, life: Life) -> None:
        while not life.leaving.is_set():
            stored = self.server.storage.get(PODS, life.key)
            if stored and stored.decoded(PODS)["status"]["phase"] == "Running":
                break
            await asyncio.sleep(_POLL_S)
        life.started = self._now()

    async def _stop(self, life: Life) -> None:
        await life.gone.wait()

    def _placed(self, life: Life) -> JSON:
        return {}
