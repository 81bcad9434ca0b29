"""The order in which children are created."""

from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.meta import BATCH_JOBS, CONFIG_MAPS, PODS, SERVICES, ObjectKey, Resource
from dlctl.reconcilers.children.creation import (
    Child,
    Rejection,
    RejectionCause,
    creation_stages,
)


def child(resource: Resource, name: str, template: str = "") -> Child:
    return Child(resource, ObjectKey("ml", name), dict, template)


def service(name: str) -> Child:
    return child(SERVICES, name)


def pod(name: str) -> Child:
    return child(PODS, name, name.split("-")[0])


NAMES = ["master-0", "worker-0", "worker-1"]
CONFIG_MAP = child(CONFIG_MAPS, "hosts")
JOB = child(BATCH_JOBS, "launcher")
CHILDREN = [JOB, *map(pod, NAMES), *map(service, NAMES), CONFIG_MAP]


def rejected(resource: Resource, names: Collection[str]) -> dict[str, Rejection]:
    return {name: Rejection(RejectionCause.FORBIDDEN, resource, "no", "no") for name in names}


def stages(rejected: Mapping[str, Rejection]) -> list[list[Child]]:
    return [stage for stage in creation_stages(CHILDREN, rejected) if stage]


def test_services_come_before_pods_and_a_pod_of_each_template_before_the_others() -> None:
    first, others = [pod("master-0"), pod("worker-0")], [pod("worker-1")]
    assert stages({}) == [[CONFIG_MAP], [*map(service, NAMES)], first, others, [JOB]]


def test_rejected_child_is_tried_alone() -> None:
    assert [pod("worker-1")] in stages(rejected(PODS, ["worker-1"]))
    assert stages(rejected(SERVICES, ["worker-0", "worker-1"]))[1] == [service("worker-0")]


@given(
    names=st.sets(st.sampled_from([*NAMES, "gone-0"])), resource=st.sampled_from([PODS, SERVICES])
)
def test_each_child_is_created_once(names: set[str], resource: Resource) -> None:
    created = [one for stage in stages(rejected(resource, names)) for one in stage]
    assert len(created) == len(CHILDREN)
    assert all(one in created for one in CHILDREN)
