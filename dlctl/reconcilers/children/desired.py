"""The wanted children of a job other than its pods."""

from collections.abc import Collection

import attrs

from dlctl.api.job import Replica
from dlctl.api.meta import Resource
from dlctl.api.objects.dependents import Dependent


@attrs.frozen
class Desired:
    """The wanted children of a running job other than its pods."""

    # The replicas that have a service.
    services: Collection[Replica] = ()
    # True if the names of a shared service resolve before its pods are ready.
    publishes_not_ready_addresses: bool = False
    dependents: Collection[Dependent] = ()
    # The contents of retained dependents while the job has no pods.
    idle_dependents: Collection[Dependent] = ()
    # The resources whose objects are kept until the job is deleted.
    retained_resources: Collection[Resource] = ()
    # Why the gang may not start yet; empty if it may.
    hold_reason: str = ""
    # True if replicas that are created last may be created.
    create_launcher: bool = True
