"""What the node warns of before a program can start: events of type Warning, by pod."""

from typing import Any

import msgspec

from dlctl.api.meta import EVENTS, Object, ObjectKey, Projection
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client


class About(Projection, frozen=True, gc=False):
    """The object that an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class Event(Object, frozen=True, gc=False):
    """An event, as much of it as is shown."""

    type: str = ""
    message: str = ""
    about: About = msgspec.field(default=About(), name="involvedObject")


class PodWarnings:
    """The last warning about each pod."""

    def __init__(self, client: Client) -> None:
        self.informer: Informer[Event] = Informer(client, EVENTS, Event)
        self.informer.add_handler(self._notice)
        self._last: dict[ObjectKey, str] = {}

    def about(self, namespace: str, pod: str) -> str:
        return self._last.get(ObjectKey(namespace, pod), "")

    def _notice(self, change: Change[Any]) -> None:
        event = change.new
        if event and event.type == "Warning" and event.about.kind == "Pod":
            self._last[ObjectKey(event.about.namespace, event.about.name)] = event.message
