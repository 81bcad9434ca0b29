"""Argument syntax: long flags may have a single dash, as in Go programs."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, Final

_FILE_FLAGS: Final = frozenset({"-f", "--filename"})


class CommandParser(argparse.ArgumentParser):
    """The parser of one command; accepts ``-flag value`` like ``--flag value``."""

    # True if the words after ``--`` are for a program; they become ``program_arguments``.
    runs_program = False
    # True while argparse, which calls the parser itself for that, sorts names and flags.
    _is_intermixed = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        if self._is_intermixed:
            return super().parse_known_args(args, namespace)
        words = None if args is None else list(self._with_double_dashes(args))
        if not self.runs_program or words is None:
            parsed, unknown = self._parse(words, namespace)
        else:
            end = words.index("--") if "--" in words else len(words)
            parsed, unknown = self._parse(words[:end], namespace)
            parsed.program_arguments = words[end + 1 :]
        if unknown:
            hint = " (those of a script follow --)" if self.runs_program else ""
            if _FILE_FLAGS.intersection(unknown) and self._takes_files:
                hint = " (unlike kubectl, dlctl takes files without a flag)"
            # With the usage of this command: argparse would print that of the whole program.
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return parsed, []

    @property
    def _takes_files(self) -> bool:
        return any(action.dest == "files" for action in self._actions)

    def _parse(self, words: list[str] | None, namespace: Any) -> tuple[Any, list[str]]:
        """Return what the words mean; names may stand on both sides of flags, as for kubectl."""
        parsed, unknown = super().parse_known_args(words, namespace)
        if not unknown or any(word.startswith("-") for word in unknown):
            return parsed, unknown
        self._is_intermixed = True
        return self.parse_known_intermixed_args(words, namespace)

    def _with_double_dashes(self, arguments: Sequence[str]) -> Iterator[str]:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        for argument in arguments[:end]:
            name = argument.partition("=")[0]
            single = name.startswith("-") and not name.startswith("--")
            long = single and f"-{name}" in self._option_string_actions
            yield f"-{argument}" if long else argument
        yield from arguments[end:]
