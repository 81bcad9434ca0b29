from collections.abc import Sequence

import pytest

from dlctl.cli.arguments import CommandParser
from dlctl.cli.jobs import delete, describe, get


def parser_of(configure: object) -> CommandParser:
    parser = CommandParser(prog="dlctl")
    assert callable(configure)
    configure(parser)
    return parser


@pytest.mark.parametrize(
    "words",
    [
        ["pytorchjob", "slow", "-n", "team"],
        ["pytorchjob", "-n", "team", "slow"],
        ["-n", "team", "pytorchjob", "slow"],
        ["pytorchjob", "-namespace", "team", "slow"],
    ],
)
def test_names_stand_before_and_after_flags(words: Sequence[str]) -> None:
    got = parser_of(get.configure).parse_args(words)
    assert (got.words, got.namespace) == (["pytorchjob", "slow"], "team")
    deleted = parser_of(delete.configure).parse_args(words)
    assert (deleted.jobs, deleted.namespace) == (["pytorchjob", "slow"], "team")
    described = parser_of(describe.configure_describe).parse_args(words)
    assert (described.job, described.namespace) == ("pytorchjob/slow", "team")


def test_unknown_words_are_named_with_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    parser = parser_of(describe.configure_why)
    with pytest.raises(SystemExit):
        parser.parse_args(["pytorchjob", "-n", "team", "a", "b"])
    err = capsys.readouterr().err
    assert "unrecognized arguments: b" in err
    assert err.startswith("usage: dlctl ")
    with pytest.raises(SystemExit):
        parser.parse_args(["slow", "--all"])
    assert "unrecognized arguments: --all" in capsys.readouterr().err
