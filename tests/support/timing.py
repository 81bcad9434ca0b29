"""A clock for tests whose event loop compacts time: wall and monotonic time follow the loop."""

import asyncio
import datetime
from typing import Final

EPOCH: Final = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
# Compacted time stands still while there is work. A wait that rounding has left a hair too short
# would be begun again at the same moment for ever; on this clock it is over.
_FAST: Final = 1 + 1e-9


class LoopClock:
    """Both clocks read the running loop, so minutes of back-off pass in no time."""

    def now(self) -> datetime.datetime:
        return EPOCH + datetime.timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() * _FAST
