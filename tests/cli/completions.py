"""What dlctl offers a shell for a line, by the protocol of argcomplete."""

import os
import subprocess
import sys


def completed(line: str, **environment: str) -> list[str]:
    """Return the completions of a line at its end."""
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    found = subprocess.run(
        ["sh", "-c", '"$0" -m dlctl 8>&1 9>&2 >/dev/null 2>&1', sys.executable],
        env={**os.environ, **asked, "_ARGCOMPLETE_IFS": "\n", "IFS": "\n", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [word.strip() for word in found.stdout.split("\n") if word]
