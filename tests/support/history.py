"""All writes to a server, and the invariants that must hold at every moment."""

import asyncio
from collections import Counter, defaultdict
from typing import NamedTuple

import attrs

from dlctl.api.job import Replica
from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, UID, ObjectKey
from dlctl.dialects.kinds import kind_of_api_version
from dlctl.local.apiserver.handler import AuditKey
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, StoredObject, table_of
from tests.builders import KINDS
from tests.support.fake_pods import replica_of
from tests.support.server import Server

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_PODS = table_of(PODS)


class Member(NamedTuple):
    """A replica of a specific job: the one of a recreated job is another."""

    job: UID
    replica: Replica


@attrs.define(eq=False)
class History:
    """Follows a server; ``violations`` lists the invariants that did not hold, and when."""

    server: Server
    created: Counter[Member] = attrs.field(factory=Counter)
    # Of those, the pods that appeared after their job had ended.
    created_late: Counter[Member] = attrs.field(factory=Counter)
    violations: list[str] = attrs.field(factory=list)
    changed: asyncio.Event = attrs.field(factory=asyncio.Event)
    _there: dict[Member, set[str]] = attrs.field(factory=lambda: defaultdict(set))

    def __attrs_post_init__(self) -> None:
        self.server.storage.observers.append(self._on_change)

    def writes(self, user_agent: str = "dlctl") -> Counter[tuple[str, str]]:
        """Return the number of writes of a client by verb and resource, without the status."""
        counted: Counter[tuple[str, str]] = Counter()
        for audited, count in self.server.audit.items():
            if user_agent in audited.user_agent and audited.verb in WRITES:
                counted[audited.verb, rbac_resource(audited)] += count
        return counted

    def _on_change(self, change: StorageEvent) -> None:
        self.changed.set()
        if change.table != _PODS:
            return
        stored = change.new or change.old
        assert stored is not None
        member = _member(stored)
        if member is None:
            return
        pods = self._there[member]
        if change.old is None:
            self.created[member] += 1
            if self._has_ended(stored):
                self.created_late[member] += 1
            if pods:
                text = f"{member.replica} of job {member.job} has a second pod: {stored.key.name}"
                self.violations.append(f"revision {change.revision}: {text}")
            pods.add(stored.uid)
        elif change.new is None:
            pods.discard(stored.uid)

    def _has_ended(self, pod: StoredObject) -> bool:
        """Return whether the job of a pod has its end in its status."""
        owner = _controller_of(pod) or {}
        kind = kind_of_api_version(KINDS, owner.get("apiVersion", ""), owner.get("kind", ""))
        if kind is None:
            # Of a launcher's Job.
            return False
        stored = self.server.storage.get(kind.resource, ObjectKey(pod.key.namespace, owner["name"]))
        status = (stored.decoded(kind.resource).get("status") if stored else None) or {}
        return "completionTime" in status


def rbac_resource(audited: AuditKey) -> str:
    """Return a resource as RBAC rules spell it."""
    below = f"/{audited.subresource}" if audited.subresource else ""
    plural, _, group = audited.resource.partition(".")
    return f"{plural}{below}.{group}" if group else f"{plural}{below}"


def _member(stored: StoredObject) -> Member | None:
    owner = _controller_of(stored)
    if owner is None:
        return None
    return Member(UID(owner["uid"]), replica_of(stored.key.name, owner["name"]))


def _controller_of(stored: StoredObject) -> JSON | None:
    return next((o for o in stored.meta.owner_references or () if o.get("controller")), None)
