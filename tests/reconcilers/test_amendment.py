"""How a companion is brought to what is asked for: what is others' stays."""

from typing import Any

from dlctl.api.companions import Companion, CompanionObject
from dlctl.api.gangs import VOLCANO_GROUPS
from dlctl.api.meta import CONFIG_MAPS, ObjectMeta
from dlctl.reconcilers.companions import amendment, applied, changes, digest


def companion(**spec: Any) -> Companion:
    optional = ("minResources", "priorityClassName")
    return Companion(VOLCANO_GROUPS, "linear", {"spec": spec}, optional, first_only=("queue",))


def there(body: Any = None, **spec: Any) -> CompanionObject:
    annotations = {"dlctl.dev/applied": digest(body)} if body else None
    return CompanionObject(ObjectMeta(name="linear", annotations=annotations), spec)


def amended(wanted: Companion, found: CompanionObject) -> Any:
    return amendment(wanted, wanted.body, found)["spec"]


def test_what_is_not_asked_for_any_more_is_taken_away() -> None:
    wanted = companion(minMember=1, minResources={"cpu": "1"})
    found = there(minMember=2, minResources={"cpu": "1", "gpu": "1"}, priorityClassName="high")
    assert amended(wanted, found) == {
        "minMember": 1,
        "minResources": {"gpu": None},
        "priorityClassName": None,
    }


def test_what_others_have_added_stays() -> None:
    assert amended(companion(minMember=1), there(minMember=2, minTaskMember={"worker": 1})) == {
        "minMember": 1
    }


def test_what_is_written_but_once_is_not_written_again() -> None:
    wanted = companion(minMember=2, queue="default")
    assert amended(wanted, there(minMember=1, queue="of-the-namespace")) == {"minMember": 2}
    assert amended(wanted, there(minMember=2)) == {"queue": "default"}


def test_object_without_a_spec_is_sent_as_it_is() -> None:
    files = Companion(CONFIG_MAPS, "linear", {"data": {"a": "b"}})
    assert amendment(files, files.body, there()) == {"data": {"a": "b"}}


def test_object_that_is_as_it_was_last_asked_for_needs_no_write() -> None:
    wanted = companion(minMember=2)
    same = there(wanted.body, minMember=1)
    assert applied(same) == digest(wanted.body)
    assert not changes([wanted], {VOLCANO_GROUPS: [same]})


def test_object_that_was_asked_for_otherwise_is_amended() -> None:
    other = there({"spec": {"minMember": 1}})
    assert changes([companion()], {VOLCANO_GROUPS: [other]}).patched == ((companion(), other),)
