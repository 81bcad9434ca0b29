"""The kinds that commands serve, of all installed frameworks; reports those that fail to load."""

import logging

from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import served_kinds
from dlctl.frameworks.registry import Registry, load_frameworks

logger = logging.getLogger(__name__)


def installed_kinds() -> list[Kind]:
    """Return the kinds of all frameworks; log an error for each framework that fails to load.

    :raises ConfigError: if two kinds would be served under one name.
    """
    found = load_frameworks()
    log_load_errors(found)
    return served_kinds(found.frameworks)


def log_load_errors(found: Registry) -> None:
    for entry_point, reason in found.error_by_entry_point.items():
        logger.error(
            "framework ignored, its jobs are not served: %s",
            reason,
            extra={"framework": entry_point},
        )
