"""Events about jobs that cannot be decoded themselves, or of which a child cannot."""

from typing import Final

import attrs

from dlctl.api.meta import UID, ObjectMeta, Resource
from dlctl.controller.event_recorder import EventRecorder
from dlctl.kube.decoding import Malformed

MALFORMED: Final = "Malformed"


@attrs.frozen
class MalformedObjects:
    """Records events about the jobs of one kind."""

    resource: Resource
    recorder: EventRecorder

    def handle_job(self, obj: Malformed) -> None:
        """Record that a job cannot be decoded."""
        if obj.key is not None and obj.uid:
            message = f"The {self.resource.kind} cannot be decoded and is ignored: {obj.error}"
            self._record(obj.key.name, obj.key.namespace, UID(obj.uid), message)

    def handle_child(self, child: Resource, obj: Malformed) -> None:
        """Record that a child of a job cannot be decoded."""
        owner = obj.controller
        if obj.key is None or owner is None:
            return
        if (owner.group, owner.kind) == (self.resource.group, self.resource.kind):
            child_name = f"{child.kind} {obj.key.name}"
            message = f"{child_name} cannot be decoded, and its changes are ignored: {obj.error}"
            self._record(owner.name, obj.key.namespace, owner.uid, message)

    def _record(self, name: str, namespace: str, uid: UID, message: str) -> None:
        metadata = ObjectMeta(name=name, namespace=namespace, uid=uid)
        self.recorder.record(self.resource, metadata, "Warning", MALFORMED, message)
