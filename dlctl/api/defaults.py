"""The administrator's defaults for all jobs, used where a job does not set its own.

Read once, at start. Frameworks and dialects get them as a value, independent of flags and files.
"""

from typing import Final, TypeVar

import attrs

from dlctl.options import Options

S = TypeVar("S")

_DEFAULT_OPTIONS: Final = Options()


@attrs.frozen(kw_only=True)
class JobDefaults:
    """The settings that shape the children of jobs."""

    # Completes replica host names; empty keeps them short, relative to the DNS search path.
    cluster_domain: str = _DEFAULT_OPTIONS.cluster_domain
    # The gang scheduler, or empty; "volcano" has its own PodGroups.
    gang_scheduler_name: str = _DEFAULT_OPTIONS.gang_scheduler_name
    # Each of a type that a framework defines.
    framework_settings: tuple[object, ...] = ()

    def of_framework(self, settings: type[S]) -> S:
        """Return a framework's settings of this type, by default those without arguments."""
        found = (one for one in self.framework_settings if isinstance(one, settings))
        return next(found, None) or settings()
