"""An operator's requests, from the API server's audit log."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from dlctl.api.json_types import JSON
from tests.support.history import WRITES

# The benchmark itself, and the cluster's own parts.
_OTHERS = ("Python", "kwok", "kube-", "kubectl", "Go-http-client")


@attrs.frozen
class AuditLog:
    """A growing file with one entry a line."""

    path: Path

    def end(self) -> int:
        """Return a mark: what follows it is later."""
        return self.path.stat().st_size

    def requests(self, since: int = 0) -> Iterator[JSON]:
        """Yield the operator's requests after a mark."""
        with self.path.open("rb") as lines:
            lines.seek(since)
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                entry = json.loads(line)
                if not entry.get("userAgent", "").startswith(_OTHERS):
                    yield entry


def is_write(entry: JSON) -> bool:
    """Return whether a request changes something else than a lease."""
    resource = entry.get("objectRef", {}).get("resource", "")
    return entry["verb"] in WRITES and resource not in ("leases", "subjectaccessreviews")


def count_by_target(entries: Iterable[JSON]) -> Counter[str]:
    """Count requests by verb and resource."""
    found: Counter[str] = Counter()
    for entry in entries:
        target = entry.get("objectRef", {})
        resource = "/".join(target[k] for k in ("resource", "subresource") if target.get(k))
        found[f"{entry['verb']} {resource}"] += 1
    return found


def status_code(entry: JSON) -> int:
    code: int = entry.get("responseStatus", {}).get("code", 0)
    return code
