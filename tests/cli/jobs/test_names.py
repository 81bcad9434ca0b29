import pytest

from dlctl.cli.jobs.names import (
    known_kinds,
    parse_kind,
    parse_name,
    parse_names,
    parse_selection,
)
from dlctl.errors import ConfigError
from tests.builders import KINDS

KNOWN = known_kinds(KINDS)


@pytest.mark.parametrize(
    "text", ["pytorchjob", "pytorchjobs", "PyTorchJob", "pytorch", "pytorchjobs.kubeflow.org"]
)
def test_kind_has_the_names_that_kubectl_knows(text: str) -> None:
    assert [kind.singular for kind in parse_kind(text, KNOWN)] == ["pytorchjob"]


def test_kind_of_several_groups_is_all_of_them() -> None:
    groups = {kind.resource.group for kind in parse_kind("mxjob", KNOWN)}
    assert groups == {"kubeflow.org", "fioravanzo.org", "mpba.fbk.eu"}
    assert len(parse_kind("mxjob.fioravanzo.org", KNOWN)) == 1
    of_xgboost = [kind.resource.group for kind in parse_kind("xgboost", KNOWN)]
    assert of_xgboost == ["kubeflow.org", "xgboostjob.kubeflow.org"]
    (kind,) = parse_kind("xgboostjob.xgboostjob.kubeflow.org", KNOWN)
    assert kind.resource.group == "xgboostjob.kubeflow.org"


def test_name_alone_may_be_of_any_kind() -> None:
    assert len(parse_name("sum", KNOWN).kinds) == len(KINDS)


@pytest.mark.parametrize("text", ["", "/", "pytorchjob/", "/sum", "pod/sum"])
def test_malformed_name_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_name(text, KNOWN)


def test_words_after_get_are_a_kind_names_or_both() -> None:
    kinds, names = parse_selection(["tfjob"], KNOWN)
    assert {kind.singular for kind in kinds} == {"tfjob"}
    assert names == []
    _, names = parse_selection(["tfjob", "a", "b"], KNOWN)
    assert [(name.name, name.kinds[0].singular) for name in names] == [
        ("a", "tfjob"),
        ("b", "tfjob"),
    ]
    _, names = parse_selection(["tfjob/a", "b"], KNOWN)
    assert [name.name for name in names] == ["a", "b"]


def test_kind_may_stand_before_the_names() -> None:
    names = [(name.name, len(name.kinds)) for name in parse_names(["PyTorchJob", "a", "b"], KNOWN)]
    assert names == [("a", 1), ("b", 1)]
    (alone,) = parse_names(["pytorchjob"], KNOWN)
    assert (alone.name, alone.likely_kind) == ("pytorchjob", "pytorchjob")
    with pytest.raises(ConfigError, match="pytorchjob/tfjob is no kind of job"):
        parse_names(["pytorchjob", "tfjob/a"], KNOWN)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("pytorhcjob", "pytorchjob"),
        ("PyTorch", "pytorch"),
        ("tfjbos", "tfjobs"),
        ("train", ""),
        ("mnist", ""),
    ],
)
def test_name_that_is_like_a_kind_may_be_meant_for_it(text: str, kind: str) -> None:
    assert parse_name(text, KNOWN).likely_kind == kind
