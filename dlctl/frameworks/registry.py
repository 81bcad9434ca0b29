"""The installed frameworks: dlctl's own and those of other packages.

Other packages register frameworks under the entry-point group ``dlctl.frameworks``; dlctl registers
its own in the same way.
"""

import inspect
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import attrs

from dlctl.errors import ConfigError
from dlctl.frameworks.dljob import DLJob

ENTRY_POINT_GROUP: Final = "dlctl.frameworks"


@attrs.frozen
class Registry:
    """The usable frameworks, and why others are not usable."""

    frameworks: Mapping[str, type[DLJob]]
    # Keys are values of entry points, such as ``my_package:RingJob``.
    error_by_entry_point: Mapping[str, str]


def load_frameworks() -> Registry:
    """Load the installed frameworks; an unusable one disables only its own kind."""
    frameworks: dict[str, type[DLJob]] = {}
    errors: dict[str, str] = {}
    for entry_point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda e: e.value):
        try:
            framework = _load(entry_point)
        except ConfigError as error:
            errors[entry_point.value] = str(error)
            continue
        other = frameworks.setdefault(framework.job_type, framework)
        if other is not framework:
            # Their jobs cannot be distinguished; dlctl's own come first in the order of names.
            errors[entry_point.value] = (
                f"{_name(other)} and {_name(framework)} both have the job_type "
                f"{framework.job_type!r}: uninstall one of the packages"
            )
    return Registry(frameworks, errors)


def _load(entry_point: EntryPoint) -> type[DLJob]:
    try:
        framework = entry_point.load()
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"framework {entry_point.value!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not (inspect.isclass(framework) and issubclass(framework, DLJob)) or framework is DLJob:
        raise ConfigError(f"framework {entry_point.value!r} is not a subclass of DLJob")
    return framework


def _name(framework: type[DLJob]) -> str:
    return f"{framework.__module__}.{framework.__qualname__}"
