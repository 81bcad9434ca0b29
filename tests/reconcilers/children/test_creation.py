"""The order in which children are created."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.meta import CONFIG_MAPS, PODS, SERVICES, ObjectKey, Resource
from dlctl.reconcilers.children.creation import (
    Child,
    Rejection,
    RejectionCause,
    creation_stages,
)


def child(resource: Resource, name: str, template: str = "") -> Child:
    return Child(resource, ObjectKey("ml", name), dict, template)


def replica(type_: str, index: int) -> list[Child]:
    name = f"{type_}-{index}"
    return [child(r, name, f"{r.plural} {type_}") for r in (SERVICES, PODS)]


CONFIG_MAP = child(CONFIG_MAPS, "hosts")
REPLICAS = [*replica("master", 0), *replica("worker", 0), *replica("worker", 1)]


def rejected_pods(names: Collection[str]) -> dict[str, Rejection]:
    return {name: Rejection(RejectionCause.FORBIDDEN, PODS, "no", "no") for name in names}


def test_dependents_come_first_and_one_of_each_template_before_the_others() -> None:
    stages = [stage for stage in creation_stages([*REPLICAS, CONFIG_MAP], {}) if stage]
    assert stages == [[CONFIG_MAP], REPLICAS[:4], REPLICAS[4:]]


def test_rejected_pod_is_tried_alone_before_other_replicas() -> None:
    stages = creation_stages([*REPLICAS, CONFIG_MAP], rejected_pods(["worker-0", "worker-1"]))
    assert [stage for stage in stages if stage][:2] == [[CONFIG_MAP], [REPLICAS[3]]]


@given(
    workers=st.integers(0, 5),
    rejected=st.sets(st.sampled_from(["master-0", "worker-0", "worker-3", "gone-0"])),
)
def test_each_child_is_created_once(workers: int, rejected: set[str]) -> None:
    children = [CONFIG_MAP, *replica("master", 0)]
    for index in range(workers):
        children += replica("worker", index)
    stages = creation_stages(children, rejected_pods(rejected))
    keys = [(one.resource, one.key) for stage in stages for one in stage]
    assert sorted(keys, key=str) == sorted(((c.resource, c.key) for c in children), key=str)
