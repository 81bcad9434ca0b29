"""The contents of a Lease when created, acquired and released. Pure: no clock, no I/O.

Leases are the JSON that the server sent, because they are replaced as a whole: labels, annotations
and fields of others are preserved.
"""

import datetime
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import LEASES, ObjectKey

# The server rejects more: nobody could ever lead again.
_MAX_TRANSITIONS: Final = 2**31 - 1


def spec(lease: JSON) -> JSON:
    """Return the spec of a lease, complete, since specs are compared for changes."""
    return lease.get("spec") or {}


def holder(lease: JSON) -> str:
    """Return the holder; empty means that the lease is free."""
    return spec(lease).get("holderIdentity") or ""


def duration_s(lease: JSON, default: float) -> float:
    """Return the lease duration in seconds of the holder, whose settings may not be ours."""
    return float(spec(lease).get("leaseDurationSeconds") or default)


def new_lease(key: ObjectKey) -> JSON:
    """Return a lease that has never been held, for its first holder to create."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"namespace": key.namespace, "name": key.name},
    }


def acquired(lease: JSON, identity: str, seconds: int, now: datetime.datetime) -> JSON:
    """Return the lease acquired or renewed; only a transition is counted and dated."""
    old = spec(lease)
    new = {
        "holderIdentity": identity,
        "leaseDurationSeconds": seconds,
        "renewTime": timestamp(now),
    }
    if holder(lease) != identity:
        new["acquireTime"] = timestamp(now)
        never_held = not holder(lease) and old.get("leaseTransitions") is None
        count = (old.get("leaseTransitions") or 0) + 1
        new["leaseTransitions"] = 0 if never_held else min(count, _MAX_TRANSITIONS)
    return {**lease, "spec": {**old, **new}}


def released(lease: JSON, now: datetime.datetime) -> JSON:
    """Return the lease without a holder, and short for clients that ignore that."""
    rest = {name: value for name, value in spec(lease).items() if name != "holderIdentity"}
    times = {"acquireTime": timestamp(now), "renewTime": timestamp(now)}
    return {**lease, "spec": {**rest, **times, "leaseDurationSeconds": 1}}


def timestamp(time: datetime.datetime) -> str:
    """Return the time as a Kubernetes MicroTime: UTC, six fractional digits."""
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
