"""Mutating admission webhooks of an embedded server: they change objects as they are written."""

import copy
from collections.abc import Callable

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver.server import ApiServer
from tests.support.harness import ClusterHarness

Mutate = Callable[[JSON], None]


def add_webhook(
    cluster: ClusterHarness, resource: Resource, mutate: Mutate, *, updates: bool = True
) -> None:
    """Call a function with each new object of a resource, and after each update of one."""
    assert isinstance(cluster.server, ApiServer)
    objects, name = cluster.server.objects, resource.group_resource
    prepare = objects.prepare_for_create.get(name)

    def mutated(obj: JSON) -> JSON:
        changed = copy.deepcopy(obj)
        mutate(changed)
        return changed

    def on_create(obj: JSON) -> JSON:
        return mutated(prepare(obj) if prepare else obj)

    objects.prepare_for_create[name] = on_create
    if updates:
        objects.prepare_for_update[name] = lambda _, new: mutated(new)
