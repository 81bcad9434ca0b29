"""Terms of leaders, from the record of a lease, and writes outside of them.

Times are those recorded by the controllers, whose clocks must agree.
"""

import datetime
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from e2e.watching import ObjectChange

_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
_POD: Final = "authentication.kubernetes.io/pod-name"


@attrs.frozen
class LeaseTerm:
    """The term of one holder; it has no end while it lasts."""

    holder: str
    since: datetime.datetime
    until: datetime.datetime | None = None
    # Released by the holder itself, not taken over.
    released: bool = False

    @property
    def pod(self) -> str:
        return self.holder.partition("_")[0]


@attrs.frozen
class Write:
    """A write request of a controller, except for those to a lease."""

    pod: str
    verb: str
    # The namespace before it, a subresource after it.
    resource: str
    name: str
    began: datetime.datetime
    ended: datetime.datetime

    def lies_in(self, term: LeaseTerm) -> bool:
        within = term.until is None or self.ended <= term.until
        return self.pod == term.pod and term.since <= self.began and within


def terms(changes: Iterable[ObjectChange]) -> list[LeaseTerm]:
    """Return the terms of all holders, the current one last."""
    found: list[LeaseTerm] = []
    holding = ""
    for change in changes:
        spec = change.object["spec"]
        holder = spec.get("holderIdentity") or ""
        if holder == holding:
            continue
        since = time(spec["acquireTime"])
        if holding:
            found[-1] = attrs.evolve(found[-1], until=since, released=not holder)
        if holder:
            found.append(LeaseTerm(holder, since))
        holding = holder
    return found


def vacant_s(found: Sequence[LeaseTerm]) -> list[float]:
    """Return how long the lease was free after each term that ended with a release."""
    pairs = itertools.pairwise(found)
    return [(b.since - a.until).total_seconds() for a, b in pairs if a.released and a.until]


def writes(audit: Iterable[dict[str, Any]], account: str) -> Iterator[Write]:
    """Yield the successful writes of an account."""
    for event in audit:
        what = event.get("objectRef") or {}
        done = event["user"].get("username") == account and event["verb"] in _WRITES
        if done and what.get("resource") != "leases" and event["responseStatus"]["code"] < 400:
            yield _write(event, what)


def _write(event: JSON, what: JSON) -> Write:
    path = (what.get(part, "") for part in ("namespace", "resource", "subresource"))
    return Write(
        pod=event["user"]["extra"][_POD][0],
        verb=event["verb"],
        resource="/".join(path).rstrip("/"),
        name=what.get("name", ""),
        began=time(event["requestReceivedTimestamp"]),
        ended=time(event["stageTimestamp"]),
    )


def time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)
