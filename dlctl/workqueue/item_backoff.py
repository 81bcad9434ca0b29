"""Back-off of keys, by their number of failures in a row.

Only counts and computes; the queue does the waiting.
"""

from typing import Final, Generic, TypeVar

from dlctl.backoff import Backoff

K = TypeVar("K")

# The cap is reached with the 19th failure: 0.005 * 2**18 is over 1000.
DEFAULT_BACKOFF: Final = Backoff(base_s=0.005, cap_s=1000.0)


class ItemBackoff(Generic[K]):
    """Failures in a row, by key; failures of one key never delay another.

    A key that is never forgotten leaves its counter behind.
    """

    def __init__(self, backoff: Backoff = DEFAULT_BACKOFF) -> None:
        self._backoff = backoff
        self._failures: dict[K, int] = {}

    def next_delay_s(self, key: K) -> float:
        """Count a failure; return the seconds to wait before the next attempt."""
        self._failures[key] = self.failures(key) + 1
        return self._backoff.delay_s(self._failures[key])

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Reset the key's failures; a key without any is fine."""
        self._failures.pop(key, None)
