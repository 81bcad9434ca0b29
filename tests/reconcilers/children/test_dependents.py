"""How a companion is brought to what is asked for: what is others' stays."""

from typing import Any

from dlctl.api.dependents import Dependent, DependentObject
from dlctl.api.gangs import VOLCANO_POD_GROUPS
from dlctl.api.meta import CONFIG_MAPS, ObjectMeta
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
    return DependentObject(ObjectMeta(name="linear", annotations=annotations), spec)


def patched(wanted: Dependent, found: DependentObject) -> Any:
    return update_patch(wanted, wanted.body, found)["spec"]


def test_what_is_not_asked_for_any_more_is_taken_away() -> None:
    wanted = dependent(minMember=1, minResources={"cpu": "1"})
    found = existing(minMember=2, minResources={"cpu": "1", "gpu": "1"}, priorityClassName="high")
    assert patched(wanted, found) == {
        "minMember": 1,
        "minResources": {"gpu": None},
        "priorityClassName": None,
    }


def test_what_others_have_added_stays() -> None:
    assert patched(dependent(minMember=1), existing(minMember=2, minTaskMember={"worker": 1})) == {
        "minMember": 1
    }


def test_what_is_written_but_once_is_not_written_again() -> None:
    wanted = dependent(minMember=2, queue="default")
    assert patched(wanted, existing(minMember=1, queue="of-the-namespace")) == {"minMember": 2}
    assert patched(wanted, existing(minMember=2)) == {"queue": "default"}


def test_object_without_a_spec_is_sent_as_it_is() -> None:
    files = Dependent(CONFIG_MAPS, "linear", {"data": {"a": "b"}})
    assert update_patch(files, files.body, existing()) == {"data": {"a": "b"}}


def test_object_that_is_as_it_was_last_asked_for_needs_no_write() -> None:
    wanted = dependent(minMember=2)
    same = existing(wanted.body, minMember=1)
    assert applied_hash(same) == content_hash(wanted.body)
    assert not diff_dependents([wanted], {VOLCANO_POD_GROUPS: [same]})


def test_object_that_was_asked_for_otherwise_is_amended() -> None:
    other = existing({"spec": {"minMember": 1}})
    assert diff_dependents([dependent()], {VOLCANO_POD_GROUPS: [other]}).patched == (
        (dependent(), other),
    )
