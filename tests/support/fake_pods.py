"""Pods on the fake node: their script, and where they are in it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import attrs

from dlctl.api.job import Replica
from dlctl.api.json_types import JSON
from dlctl.api.meta import UID, ObjectKey
from tests.support.outcomes import (
    KEEPS_RUNNING,
    ReplicaScript,
    Script,
)


@attrs.define(eq=False)
class FakePod:
    """One pod on the node, until it is gone."""

    key: ObjectKey
    uid: UID
    pod: JSON
    script: Script | None
    replica: Replica
    started: str = ""
    restarts: int = 0
    address: str = "10.0.0.1"
    leaving: asyncio.Event = attrs.field(factory=asyncio.Event)
    gone: asyncio.Event = attrs.field(factory=asyncio.Event)
    # Set once no scheduling gate is left.
    released: asyncio.Event = attrs.field(factory=asyncio.Event)
    # The final state of its terminated container.
    terminated: JSON = attrs.field(factory=dict)
    sidecars_ended: asyncio.Event = attrs.field(factory=asyncio.Event)
    # Whether it goes on by itself in a moment.
    is_pausing: bool = False

    async def pause(self, seconds: float) -> None:
        self.is_pausing = True
        try:
            await asyncio.sleep(seconds)
        finally:
            self.is_pausing = False

    @property
    def part(self) -> ReplicaScript:
        return self.script.parts[self.replica] if self.script else ReplicaScript((KEEPS_RUNNING,))

    def restarts_in_place(self, code: int) -> bool:
        """Return whether the kubelet restarts a container with this exit code in its pod."""
        policy = self.pod["spec"].get("restartPolicy")
        return bool(policy == "Always" or (code and policy == "OnFailure"))


def replica_of(name: str, job: str) -> Replica:
    """Return the replica that a pod's name stands for."""
    own = name.removeprefix(f"{job[:40]}-")
    rest = own.split("-")
    return Replica(rest[0], int(rest[-1])) if rest[-1].isdecimal() else Replica(own, 0)


def is_running(pod: Mapping[str, Any]) -> bool:
    """Return whether a container of the pod runs; the phase may lag behind."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("running" in (status.get("state") or {}) for status in statuses)
