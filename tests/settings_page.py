"""The page of the documentation that lists all settings.

``python -m tests.settings_page`` writes it anew.
"""

from pathlib import Path
from typing import Final

import attrs

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


def page() -> str:
    rows = []
    for field in attrs.fields(Options):
        default = default_in_words(field).removeprefix("default").strip(" :")
        names = f"`{flag(field.name)}` | `{variable(field.name)}` | `{key(field.name)}`"
        rows.append(f"| {names} | {default} | {field.metadata['help']} |\n")
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
