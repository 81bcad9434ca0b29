"""How a gang scheduler starts a job: Kubeflow's SchedulingPolicy."""

from collections.abc import Mapping

import attrs


@attrs.frozen
class SchedulingPolicy:
    """A job's settings of its gang; absent ones derive from its replicas."""

    # How many replicas start together, instead of all.
    min_available: int | None = None
    queue: str = ""
    # The resources that must be free, instead of the sum of the replicas' requests; {} for none.
    min_resources: Mapping[str, str] | None = None
    priority_class: str = ""
    # Seconds that its pods wait for the rest of the gang.
    schedule_timeout_s: int | None = None
