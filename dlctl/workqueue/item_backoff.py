"""How long a key waits after each failure in a row: doubling, up to a cap.

It only counts and computes; waiting is the queue's business.
"""

import math
from typing import Final, Generic, TypeVar

K = TypeVar("K")

BASE_S: Final = 0.005
# Reached with the 19th failure: 0.005 * 2**18 is over 1000.
CAP_S: Final = 1000.0


class ItemBackoff(Generic[K]):
    """Failures in a row, by key; one key's failures never slow another's.

    A key that is never forgotten leaves its counter behind.
    """

    def __init__(self, *, base_s: float = BASE_S, cap_s: float = CAP_S) -> None:
        if not 0 < base_s <= cap_s:
            raise ValueError("expected 0 < base_s <= cap_s")
        self._base_s = base_s
        self._cap_s = cap_s
        # From this exponent on the product would be over the cap, or no float at all.
        self._last_doubling = math.ceil(math.log2(cap_s / base_s))
        self._failures: dict[K, int] = {}

    def next_delay_s(self, key: K) -> float:
        """Count a failure, and return the seconds to wait before the next try."""
        before = self._failures.get(key, 0)
        self._failures[key] = before + 1
        return min(self._cap_s, self._base_s * 2.0 ** min(before, self._last_doubling))

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Start anew with the key; one that has not failed is fine."""
        self._failures.pop(key, None)
