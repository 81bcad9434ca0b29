"""How long a key waits after each failure in a row.

It only counts and computes; waiting is the queue's business.
"""

from typing import Final, Generic, TypeVar

from dlctl.backoff import Backoff

K = TypeVar("K")

# The cap is reached with the 19th failure: 0.005 * 2**18 is over 1000.
DEFAULT_BACKOFF: Final = Backoff(base_s=0.005, cap_s=1000.0)


class ItemBackoff(Generic[K]):
    """Failures in a row, by key; one key's failures never slow another's.

    A key that is never forgotten leaves its counter behind.
    """

    def __init__(self, backoff: Backoff = DEFAULT_BACKOFF) -> None:
        self._backoff = backoff
        self._failures: dict[K, int] = {}

    def next_delay_s(self, key: K) -> float:
        """Count a failure, and return the seconds to wait before the next try."""
        self._failures[key] = self.failures(key) + 1
        return self._backoff.delay_s(self._failures[key])

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Start anew with the key; one that has not failed is fine."""
        self._failures.pop(key, None)
