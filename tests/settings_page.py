"""The page of the documentation that lists all settings.

``python -m tests.settings_page`` writes it anew.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from dlctl.cli import et_operator, training_operator
from dlctl.cli.settings import default_in_words, key, variable
from dlctl.options import Options, flag

PAGE: Final = Path(__file__).parents[1] / "docs" / "settings.md"
_HEAD: Final = """\
# Settings of the controller

Each can be given in three ways. A flag is stronger than the environment, and the environment is
stronger than the file:

| | for example |
|---|---|
| flag | `dlctl controller --workers 8` |
| environment | `DLCTL_WORKERS=8` |
| file | `workers: 8` in a YAML file that `--config` or `DLCTL_CONFIG` names |

What is not a setting, is malformed, or contradicts another setting is refused: the program says so
in one line and ends with exit code 2. A switch alone means true: `--leader-elect`.

| flag | environment | file | default | |
|---|---|---|---|---|
"""
_TRAINING_OPERATOR: Final = """
## For those who come from training-operator

The flags of training-operator v1 are accepted as its Deployments have them, with one dash or two.
Most are settings of the same name, above. The others are:

| flag or variable of training-operator | here |
|---|---|
"""
_ET_OPERATOR: Final = """
So are those of et-operator. Its `--metrics-addr` moves `/metrics` alone, as above:

| flag of et-operator | here |
|---|---|
"""
_TAIL: Final = """
`--enable-scheme` names kinds in any case, in whichever API group they are. The variables of
training-operator are weaker than every name of our own, the file's included.

Everything is served at `--bind-address`. `--metrics-bind-address` and `--health-probe-bind-address`
take one part of it elsewhere; both may name one address. All three at once are refused, since
nothing would be left for the first. Health is at the same port as metrics unless one of them is
given; in training-operator, it is at `:8081`.

`--kube-api-qps` and `--kube-api-burst` limit nothing unless they are given: the API server's own
fairness does better. The limit holds for all requests together, the start of a watch included, but
not for those that keep the Lease.
"""


def page() -> str:
    rows = []
    for field in attrs.fields(Options):
        default = default_in_words(field).removeprefix("default").removeprefix(":").strip()
        names = f"`{flag(field.name)}` | `{variable(field.name)}` | `{key(field.name)}`"
        rows.append(f"| {names} | {default} | {field.metadata['help']} |\n")
    theirs = (
        *_named(training_operator.ALIASES),
        *(
            f"| `{n}` | `{flag(f)}`, where that is not given |\n"
            for n, f in training_operator.VARIABLES.items()
        ),
        *_ignored(training_operator.IGNORED),
    )
    et_operators = (*_named(et_operator.ALIASES), *_ignored(et_operator.IGNORED))
    parts = (*rows, _TRAINING_OPERATOR, *theirs, _ET_OPERATOR, *et_operators)
    return _HEAD + "".join(parts) + _TAIL


def _named(aliases: Mapping[str, str]) -> Iterator[str]:
    for alias, field in aliases.items():
        yield f"| `{flag(alias)}`, `{variable(alias)}` | the same as `{flag(field)}` |\n"


def _ignored(flags: Mapping[str, str]) -> Iterator[str]:
    for name, reason in flags.items():
        yield f"| `{name}` | no effect, and the log says so: {reason} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
