"""The frameworks that commands serve, with a word about those that cannot be loaded."""

import logging

from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.registry import Registry, registry

logger = logging.getLogger(__name__)


def usable() -> dict[str, type[DLJob]]:
    """Return the frameworks by job type; of each broken one an error is logged."""
    found = registry()
    report(found)
    return dict(found.frameworks)


def report(found: Registry) -> None:
    for entry_point, reason in found.broken.items():
        logger.error(
            "framework left out: its jobs are not served: %s",
            reason,
            extra={"framework": entry_point},
        )
