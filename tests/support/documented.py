"""What a cluster has shown to users of its jobs, and the page that lists it."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from dlctl.api.meta import EVENTS
from tests.support.harness import ClusterHarness, StartCluster

PAGE: Final = Path(__file__).parents[2] / "docs/reference/events.md"
_NAME: Final = re.compile(r"`([\w<>/]+)`")


def documented_events() -> set[tuple[str, str]]:
    """Return each reason that the page has, with ``<Kind>`` where a kind stands, and its types."""
    return {
        (reason, type_)
        for reasons, types in _rows("## Events of ")
        for reason in _NAME.findall(reasons)
        for type_ in re.findall(r"Normal|Warning", types)
    }


def documented_conditions() -> set[str]:
    return {name for names, *_ in _rows("## Conditions") for name in _NAME.findall(names)}


def _rows(heading: str) -> Iterator[tuple[str, str]]:
    for section in PAGE.read_text().split("\n## "):
        if f"## {section}".startswith(heading):
            for line in section.splitlines():
                cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
                if line.startswith("|") and "---" not in line:
                    yield cells[0], cells[1]


def undocumented(cluster: ClusterHarness) -> set[str]:
    """Return what users have seen of jobs that the page does not list."""
    events, types = documented_events(), documented_conditions()
    found = {
        f"event {event['type']} {event['reason']}"
        for event in cluster.objects(EVENTS)
        # Those of Kubernetes itself have pages of their own.
        if event["source"].get("component") != "job-controller"
        and not {(reason, event["type"]) for reason in _spellings(event)} & events
    }
    for kind in cluster.kinds:
        for resource in (kind.resource, *kind.scalers):
            for obj in cluster.objects(resource):
                stated = (obj.get("status") or {}).get("conditions") or ()
                found |= {f"condition {c['type']}" for c in stated if c["type"] not in types}
    return found


def _spellings(event: dict[str, Any]) -> set[str]:
    """Return the reason as it is, and with ``<Kind>`` for the kind of the job."""
    kind, reason = event["involvedObject"]["kind"], str(event["reason"])
    return {reason, f"<Kind>{reason.removeprefix(kind)}" if reason.startswith(kind) else reason}


def documented(start: StartCluster) -> StartCluster:
    """Return the same, but for a check at the end that all that users saw is on the page."""

    @asynccontextmanager
    async def start_documented(**options: Any) -> AsyncIterator[ClusterHarness]:
        async with start(**options) as cluster:
            yield cluster
            missing = undocumented(cluster)
            assert not missing, f"{PAGE.name} does not have {', '.join(sorted(missing))}"

    return start_documented
