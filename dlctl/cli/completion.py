"""``dlctl completion``: the code that lets a shell complete commands, flags and names of jobs.

The shell then runs dlctl itself for each completion, by the protocol of argcomplete.
"""

import argparse
import os
import shlex
import sys
from contextlib import suppress
from typing import Final

from dlctl.errors import ConfigError

_SHELLS: Final = ("bash", "zsh", "fish")
_REQUESTED: Final = "_ARGCOMPLETE"
_LINE: Final = "COMP_LINE"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the code that completes commands, flags and names of jobs. For this shell alone: "
        "`source <(dlctl completion bash)`; in fish: `dlctl completion fish | source`."
    )
    parser.add_argument("shell", choices=_SHELLS)
    parser.set_defaults(command=completion)


def completion(args: argparse.Namespace) -> int:
    try:
        from argcomplete.shell_integration import shellcode
    except ModuleNotFoundError as error:
        raise ConfigError(
            "completion needs optional packages: pip install 'dlctl[local]' (missing: argcomplete)"
        ) from error
    print(shellcode(["dlctl"], shell=args.shell))
    return 0


def requested_words() -> list[str] | None:
    """Return the words after ``dlctl`` that a shell wants completed; None if none does."""
    if _REQUESTED not in os.environ:
        return None
    line = os.environ.get(_LINE, "")
    with suppress(ValueError):
        # A quotation may be unfinished.
        return shlex.split(line)[1:]
    return line.split()[1:]


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, and end the process."""
    import argcomplete

    # By default it ends without the clean-up of temporary files, which hold a cluster's CA.
    argcomplete.autocomplete(parser, exit_method=sys.exit)
