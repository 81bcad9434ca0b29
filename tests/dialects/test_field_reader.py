"""Reading manifests: names in any case, and messages that name the field as the user spelt it."""

import enum
from collections.abc import Callable
from typing import Any

import pytest

from dlctl.dialects.field_reader import FieldReader, read_objects
from dlctl.errors import InvalidJobError


class Fruit(enum.StrEnum):
    APPLE = "Apple"
    PEAR = "Pear"


def fields(**values: Any) -> FieldReader:
    return FieldReader(values, "spec")


@pytest.mark.parametrize("spelt", ["PsRootPort", "psRootPort", "psrootport", "PSROOTPORT"])
def test_field_is_read_in_any_case_and_named_as_written(spelt: str) -> None:
    read = fields(**{spelt: 9000})
    assert read.port("PsRootPort", 1) == 9000
    assert read.path_of("PsRootPort") == f"spec.{spelt}"
    assert "PsRootPort" in read


def test_null_means_absent() -> None:
    read = fields(replicas=None, name=None, kind=None)
    assert "replicas" not in read
    assert read.integer("replicas", 7) == 7
    assert read.string("name", "x") == "x"
    assert read.enum("kind", Fruit, Fruit.PEAR) is Fruit.PEAR


def test_canonicalized_object_has_the_given_names_and_keeps_the_others() -> None:
    read = fields(Spec=1, Other=2, gone=None)
    assert read.canonicalized(spec=3, absent=None) == {"Other": 2, "spec": 3}


def test_items_of_a_list_have_their_index_in_the_path() -> None:
    first, second = read_objects([{"a": 1}, None], "spec.list")
    assert first.path_of("a") == "spec.list[0].a"
    assert second.path_of("a") == "spec.list[1].a"


@pytest.mark.parametrize("text", ["pear", "PEAR", "Pear"])
def test_choice_is_read_in_any_case(text: str) -> None:
    assert fields(fruit=text).enum("fruit", Fruit, Fruit.APPLE) is Fruit.PEAR


def test_empty_choice_is_the_default() -> None:
    assert fields(fruit="").enum("fruit", Fruit, Fruit.APPLE) is Fruit.APPLE


def test_choice_of_strings_has_one_spelling_and_a_default() -> None:
    assert fields(fruit="Pear").choice("fruit", list(Fruit)) == "Pear"
    assert fields(fruit="").choice("fruit", ("", "Pear")) == ""
    assert fields().choice("fruit", list(Fruit), "Apple") == "Apple"
    with pytest.raises(
        InvalidJobError, match=r"spec.fruit: is 'pear', but must be one of Apple, P"
    ):
        fields(fruit="pear").choice("fruit", ("", *Fruit))


@pytest.mark.parametrize(
    ("read", "message"),
    [
        pytest.param(
            lambda f: f.integer("n", 1), "spec.n: must be an integer, not true", id="bool"
        ),
        pytest.param(
            lambda f: f.string("n"),
            "spec.n: must be a string, not true: put it in quotes",
            id="string",
        ),
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
            lambda f: f.enum("fruit", Fruit, Fruit.APPLE),
            "spec.fruit: is 'plum', but must be one of Apple, Pear",
            id="choice",
        ),
    ],
)
def test_message_names_the_field_and_what_it_must_be(
    read: Callable[[FieldReader], object], message: str
) -> None:
    with pytest.raises(InvalidJobError) as caught:
        read(fields(n=True, low=-1, fruit="plum"))
    assert str(caught.value) == message


def test_long_values_are_shown_truncated() -> None:
    with pytest.raises(InvalidJobError, match=r"not 'x{30,36}\.\.\."):
        fields(n="x" * 500).integer("n", 1)
