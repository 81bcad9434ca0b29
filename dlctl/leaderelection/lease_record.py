"""What a Lease says, and what it says once it is claimed or given back. Pure: no clock, no I/O.

Leases are handled as the JSON that the server sent, because they are put back as a whole: labels,
annotations and fields of others stay what they are.
"""

import datetime
from typing import Any

from dlctl.api.meta import LEASES, ObjectKey

JSON = dict[str, Any]


def spec(lease: JSON) -> JSON:
    """Return all that counts about a lease; nothing of it may be missing when they are compared."""
    return lease.get("spec") or {}


def holder(lease: JSON) -> str:
    """Return who holds the lease; nobody does if that is empty, and it is free at once."""
    return spec(lease).get("holderIdentity") or ""


def duration_s(lease: JSON, default: float) -> float:
    """Return how long the holder promises to renew within: its settings may not be ours."""
    return float(spec(lease).get("leaseDurationSeconds") or default)


def new_lease(key: ObjectKey) -> JSON:
    """Return a lease that nobody has held yet, for its first holder to create."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"namespace": key.namespace, "name": key.name},
    }


def acquired(lease: JSON, identity: str, seconds: int, now: datetime.datetime) -> JSON:
    """Return the lease taken over or renewed; only a change of hands is counted and dated."""
    old = spec(lease)
    new = {
        "holderIdentity": identity,
        "leaseDurationSeconds": seconds,
        "renewTime": timestamp(now),
    }
    if holder(lease) != identity:
        new["acquireTime"] = timestamp(now)
        never_held = not holder(lease) and old.get("leaseTransitions") is None
        new["leaseTransitions"] = 0 if never_held else (old.get("leaseTransitions") or 0) + 1
    return {**lease, "spec": {**old, **new}}


def released(lease: JSON, now: datetime.datetime) -> JSON:
    """Return the lease without a holder, and short-lived for those who do not know what that is."""
    rest = {name: value for name, value in spec(lease).items() if name != "holderIdentity"}
    times = {"acquireTime": timestamp(now), "renewTime": timestamp(now)}
    return {**lease, "spec": {**rest, **times, "leaseDurationSeconds": 1}}


def timestamp(time: datetime.datetime) -> str:
    """Return the form that Kubernetes calls MicroTime: always UTC, always six digits."""
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
