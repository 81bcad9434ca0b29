"""The ``dlctl`` program, also as ``python -m dlctl``."""

import os
import sys

# The value of signal.SIGINT: that module takes a while to be imported, without a handler.
_SIGINT = 2
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def main() -> None:
    """Run the command line and exit with its code."""
    _open_closed_streams()
    _print_any_text()
    try:
        import signal

        # The first process of a container ignores signals that it has no handler for, and commands
        # take a while to be imported before they bring one of their own.
        signal.signal(signal.SIGTERM, _on_sigterm)
        from dlctl.cli.program import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.stderr.write("dlctl: interrupted\n")
        sys.exit(128 + _SIGINT)


def _open_closed_streams() -> None:
    """Put ``/dev/null`` where a standard stream is closed, as by ``>&-``.

    Otherwise the next file or socket gets its number, and whatever is printed by other programs.
    """
    for name, mode in _STREAMS:
        if getattr(sys, name) is None:
            # The streams before it are open, so it gets the number of the closed one.
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)
            setattr(sys, name, open(nowhere, mode, encoding="utf-8", closefd=False))


def _print_any_text() -> None:
    """Escape what stdout cannot encode, as stderr does: names of files need not be UTF-8."""
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")


def _on_sigterm(number: int, _: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
