"""The frameworks that commands serve, with a word about those that cannot be loaded."""

import logging

from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.registry import Registry, load_frameworks

logger = logging.getLogger(__name__)


def loadable() -> dict[str, type[DLJob]]:
    """Return the frameworks by job type; of each broken one an error is logged."""
    found = load_frameworks()
    report(found)
    return dict(found.frameworks)


def report(found: Registry) -> None:
    for entry_point, reason in found.error_by_entry_point.items():
        logger.error(
            "framework left out: its jobs are not served: %s",
            reason,
            extra={"framework": entry_point},
        )
