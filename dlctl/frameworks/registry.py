"""The frameworks that are installed: dlctl's own and those of other packages.

Another package offers one through the entry-point group ``dlctl.frameworks``; dlctl's own are
declared in the same way, so there is one road in.
"""

import inspect
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from dlctl.errors import ConfigError
from dlctl.frameworks.dljob import DLJob

GROUP: Final = "dlctl.frameworks"


def installed() -> dict[str, type[DLJob]]:
    """Return the frameworks by job type.

    :raises ConfigError: if one cannot be loaded, is no framework, or two claim one job type.
    """
    frameworks: dict[str, type[DLJob]] = {}
    for entry_point in sorted(entry_points(group=GROUP), key=lambda e: e.value):
        framework = _load(entry_point)
        other = frameworks.setdefault(framework.job_type, framework)
        if other is not framework:
            raise ConfigError(
                f"{_name(other)} and {_name(framework)} both have the job_type "
                f"{framework.job_type!r}: uninstall one of the packages"
            )
    return frameworks


def _load(entry_point: EntryPoint) -> type[DLJob]:
    try:
        framework = entry_point.load()
    except Exception as error:
        raise ConfigError(f"framework {entry_point.value!r} cannot be loaded: {error}") from error
    if not (inspect.isclass(framework) and issubclass(framework, DLJob)) or framework is DLJob:
        raise ConfigError(f"framework {entry_point.value!r} is not a subclass of DLJob")
    return framework


def _name(framework: type[DLJob]) -> str:
    return f"{framework.__module__}.{framework.__qualname__}"
