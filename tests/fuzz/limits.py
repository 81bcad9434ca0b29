"""How much is tried, with which seed, and the cost limits; set by the environment.

``FUZZ_SEED`` is the commit's by default, so a change is tried with other objects than the last one,
and trying it again tries the same. ``FUZZ_BUDGET_S`` is the time for all objects taken together.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

OBJECTS: Final = int(os.environ.get("FUZZ_OBJECTS", "20000"))
STORED: Final = int(os.environ.get("FUZZ_STORED", "300"))
BUDGET_S: Final = float(os.environ.get("FUZZ_BUDGET_S", "600"))
# Of one object.
MAX_TIME_S: Final = 0.05
# Beside what its text and its decoded JSON take.
_MAX_MEMORY_BYTES: Final = 1 << 20
# A watch line, the object in it and its spec.
_MAX_TEXTS: Final = 8
# As written, and with the names of core/v1.
_MAX_DECODED: Final = 2
# Of a job whose plan is made in a thread: it may have 10,000 replicas.
LARGE_MAX_TIME_S: Final = 1.0
_LARGE_MAX_MEMORY_BYTES: Final = 64 << 20
# Measuring memory takes several times as long as the rest: only every n-th is measured.
MEASURE_EVERY: Final = 10
# These all are.
ALWAYS_MEASURED_BYTES: Final = 50_000


def max_memory_bytes(text_bytes: int, decoded_bytes: int, *, large: bool) -> int:
    """Return how much memory an object of a size may take, which no bound fits that is one number.

    Decoded, JSON takes 10 to 45 times the bytes of its text: most where it is all brackets.
    """
    fixed = _LARGE_MAX_MEMORY_BYTES if large else _MAX_MEMORY_BYTES
    return fixed + _MAX_TEXTS * text_bytes + _MAX_DECODED * decoded_bytes


def seed() -> int:
    """Return the seed of everything drawn."""
    given = os.environ.get("FUZZ_SEED")
    return int(given, 0) if given else int(_commit()[:8], 16)


def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, check=False)
    # Without a repository, as in a tarball, one seed is as good as another.
    return found.stdout.decode().strip() or "0" * 40


SEED: Final = seed()
