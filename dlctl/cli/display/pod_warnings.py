"""The node's Warning events by pod: they explain why a program does not start."""

import re
from typing import Any, Final

import msgspec

from dlctl.api.meta import EVENTS, Object, ObjectKey, Projection
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client

# Words that programs put before the text of an error that conditions have, too.
_PREFIX: Final = re.compile(r"\A(?:Error: |Error creating: )+")


def bare_message(message: str) -> str:
    """Return the part of a message of another program that conditions repeat."""
    return _PREFIX.sub("", message.strip()).rstrip(".")


class InvolvedObject(Projection, frozen=True, gc=False):
    """The object that an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class DisplayedEvent(Object, frozen=True, gc=False):
    """The displayed fields of an event."""

    type: str = ""
    reason: str = ""
    message: str = ""
    involved_object: InvolvedObject = msgspec.field(default=InvolvedObject(), name="involvedObject")


class PodWarnings:
    """The last warning about each pod."""

    def __init__(self, client: Client) -> None:
        self.informer: Informer[DisplayedEvent] = Informer(client, EVENTS, DisplayedEvent)
        self.informer.add_handler(self._on_change)
        self._last: dict[ObjectKey, str] = {}
        self._ended_by: dict[ObjectKey, str] = {}

    def last_warning(self, namespace: str, pod: str) -> str:
        return self._last.get(ObjectKey(namespace, pod), "")

    def ended_by(self, namespace: str, pod: str) -> str:
        """Return the probe or hook for which the node has last ended a program; or nothing."""
        return self._ended_by.get(ObjectKey(namespace, pod), "")

    def _on_change(self, change: Change[Any]) -> None:
        event = change.new
        if event and event.type == "Warning" and event.involved_object.kind == "Pod":
            key = ObjectKey(event.involved_object.namespace, event.involved_object.name)
            self._last[key] = event.message
            if _ends_program(event):
                self._ended_by[key] = event.message


def _ends_program(event: DisplayedEvent) -> bool:
    # Readiness probes end nothing.
    is_probe = event.reason == "Unhealthy" and event.message.startswith(("Liveness", "Startup"))
    return is_probe or event.reason == "FailedPostStartHook"
