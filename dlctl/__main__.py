"""The ``dlctl`` program, also as ``python -m dlctl``."""

import sys

# What signal.SIGINT is: that module takes a while to be imported, without a handler.
_SIGINT = 2


def main() -> None:
    """Run the command line and exit with its code."""
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


def _on_sigterm(number: int, _: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
