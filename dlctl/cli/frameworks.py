"""The frameworks that commands serve; reports those that fail to load."""

import logging

from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.registry import Registry, load_frameworks

logger = logging.getLogger(__name__)


def installed_frameworks() -> dict[str, type[DLJob]]:
    """Return the frameworks by job type; log an error for each that fails to load."""
    found = load_frameworks()
    log_load_errors(found)
    return dict(found.frameworks)


def log_load_errors(found: Registry) -> None:
    for entry_point, reason in found.error_by_entry_point.items():
        logger.error(
            "framework ignored, its jobs are not served: %s",
            reason,
            extra={"framework": entry_point},
        )
