"""What holds for all tests."""

import asyncio

# Otherwise pytest-asyncio asks for the current loop between two tests, Python 3.11 makes one, and
# nobody closes it: the warning would fail whichever test is next.
asyncio.set_event_loop(None)
