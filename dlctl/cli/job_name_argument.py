"""The name of a new job as an argument: services are named after it."""

import argparse
import re
from typing import Final

_NAME: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def job_name(text: str) -> str:
    """Return the name; the type of an argument."""
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r}: use lower-case letters, digits and '-', begin with a letter, and do not "
            "end with '-'"
        )
    return text
