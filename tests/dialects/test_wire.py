"""Reading manifests: names in any case, and messages that name the field as the user spelt it."""

import enum
from collections.abc import Callable
from typing import Any

import pytest

from dlctl.dialects.wire import Fields, objects
from dlctl.errors import InvalidJobError


class Fruit(enum.StrEnum):
    APPLE = "Apple"
    PEAR = "Pear"


def fields(**values: Any) -> Fields:
    return Fields(values, "spec")


@pytest.mark.parametrize("spelt", ["PsRootPort", "psRootPort", "psrootport", "PSROOTPORT"])
def test_field_is_read_in_any_case_and_named_in_its_own(spelt: str) -> None:
    read = fields(**{spelt: 9000})
    assert read.port("PsRootPort", 1) == 9000
    assert read.at("PsRootPort") == f"spec.{spelt}"
    assert "PsRootPort" in read


def test_null_is_as_good_as_absent() -> None:
    read = fields(replicas=None, name=None, kind=None)
    assert "replicas" not in read
    assert read.integer("replicas", 7) == 7
    assert read.text("name", "x") == "x"
    assert read.choice("kind", Fruit, Fruit.PEAR) is Fruit.PEAR


def test_object_respelt_has_the_given_names_and_keeps_the_others() -> None:
    read = fields(Spec=1, Other=2, gone=None)
    assert read.respelt(spec=3, absent=None) == {"Other": 2, "spec": 3}


def test_entries_of_a_list_know_their_index() -> None:
    first, second = objects([{"a": 1}, None], "spec.list")
    assert first.at("a") == "spec.list[0].a"
    assert second.at("a") == "spec.list[1].a"


@pytest.mark.parametrize("text", ["pear", "PEAR", "Pear"])
def test_choice_is_read_in_any_case(text: str) -> None:
    assert fields(fruit=text).choice("fruit", Fruit, Fruit.APPLE) is Fruit.PEAR


def test_empty_choice_is_the_default() -> None:
    assert fields(fruit="").choice("fruit", Fruit, Fruit.APPLE) is Fruit.APPLE


@pytest.mark.parametrize(
    ("read", "message"),
    [
        pytest.param(
            lambda f: f.integer("n", 1), "spec.n: must be an integer, not True", id="bool"
        ),
        pytest.param(lambda f: f.text("n"), "spec.n: must be a string, not True", id="string"),
        pytest.param(lambda f: f.object("n"), "spec.n: must be an object, not True", id="object"),
        pytest.param(lambda f: f.items("n"), "spec.n: must be a list, not True", id="list"),
        pytest.param(lambda f: f.items("m"), "spec.m: is missing: give a list", id="no list"),
        pytest.param(
            lambda f: f.integer("low", 1), "spec.low: is -1, but must be 0 or more", id="negative"
        ),
        pytest.param(
            lambda f: f.port("low", 1),
            "spec.low: is -1, but must be between 1 and 65535",
            id="port",
        ),
        pytest.param(
            lambda f: f.choice("fruit", Fruit, Fruit.APPLE),
            "spec.fruit: is 'plum', but must be one of Apple, Pear",
            id="choice",
        ),
    ],
)
def test_message_names_the_field_and_what_it_must_be(
    read: Callable[[Fields], object], message: str
) -> None:
    with pytest.raises(InvalidJobError) as caught:
        read(fields(n=True, low=-1, fruit="plum"))
    assert str(caught.value) == message


def test_long_values_are_shown_cut() -> None:
    with pytest.raises(InvalidJobError, match=r"not 'x{30,36}\.\.\."):
        fields(n="x" * 500).integer("n", 1)
