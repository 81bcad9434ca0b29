"""Creating, patching and deleting dependents; fields of others are kept."""

from typing import Any

import msgspec

from dlctl.api.meta import CONFIG_MAPS, ObjectMeta
from dlctl.api.objects.dependents import Dependent, DependentObject
from dlctl.api.objects.pod_groups import VOLCANO_POD_GROUPS
from dlctl.reconcilers.children.dependents import (
    applied_hash,
    content_hash,
    diff_dependents,
    update_patch,
)


def dependent(**spec: Any) -> Dependent:
    optional = ("minResources", "priorityClassName")
    return Dependent(
        VOLCANO_POD_GROUPS, "linear", {"spec": spec}, optional, create_only_fields=("queue",)
    )


def existing(body: Any = None, **spec: Any) -> DependentObject:
    annotations = {"dlctl.dev/applied-hash": content_hash(body)} if body else None
    metadata = ObjectMeta(name="linear", annotations=annotations)
    return DependentObject(metadata, spec=msgspec.Raw(msgspec.json.encode(spec)))


def patched(wanted: Dependent, found: DependentObject) -> Any:
    return update_patch(wanted, wanted.body, found)["spec"]


def test_dependent_that_is_no_longer_desired_is_deleted() -> None:
    wanted = dependent(minMember=1, minResources={"cpu": "1"})
    found = existing(minMember=2, minResources={"cpu": "1", "gpu": "1"}, priorityClassName="high")
    assert patched(wanted, found) == {
        "minMember": 1,
        "minResources": {"gpu": None},
        "priorityClassName": None,
    }


def test_fields_added_by_others_are_kept() -> None:
    assert patched(dependent(minMember=1), existing(minMember=2, minTaskMember={"worker": 1})) == {
        "minMember": 1
    }


def test_create_only_fields_are_not_patched() -> None:
    wanted = dependent(minMember=2, queue="default")
    assert patched(wanted, existing(minMember=1, queue="of-the-namespace")) == {"minMember": 2}
    assert patched(wanted, existing(minMember=2)) == {"queue": "default"}


def test_dependent_without_a_spec_is_created_unchanged() -> None:
    files = Dependent(CONFIG_MAPS, "linear", {"data": {"a": "b"}})
    assert update_patch(files, files.body, existing()) == {"data": {"a": "b"}}


def test_unchanged_dependent_needs_no_write() -> None:
    wanted = dependent(minMember=2)
    same = existing(wanted.body, minMember=1)
    assert applied_hash(same) == content_hash(wanted.body)
    assert not diff_dependents([wanted], {VOLCANO_POD_GROUPS: [same]})


def test_changed_dependent_is_patched() -> None:
    other = existing({"spec": {"minMember": 1}})
    assert diff_dependents([dependent()], {VOLCANO_POD_GROUPS: [other]}).patched == (
        (dependent(), other),
    )
