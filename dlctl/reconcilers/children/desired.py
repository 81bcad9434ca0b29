"""The children of a job that are no pods, as they should be."""

from collections.abc import Collection, Iterable

import attrs

from dlctl.api.dependents import Dependent
from dlctl.api.job import Replica
from dlctl.api.meta import Resource


@attrs.frozen
class Desired:
    """What a running job has beside its pods."""

    # The replicas that others dial.
    services: Collection[Replica] = ()
    dependents: Iterable[Dependent] = ()
    # Dependents that are retained without pods, as they are then.
    idle_dependents: Iterable[Dependent] = ()
    # The resources whose objects are left to go with the job.
    retained_resources: Collection[Resource] = ()
    # Why no pod is to be made yet.
    hold_reason: str = ""
    # Whether replicas that come after all others may be made.
    create_launcher: bool = True
