"""Fixtures of the node's tests."""

import asyncio

# Else pytest-asyncio makes a loop of its own to come back to, and never closes it.
asyncio.set_event_loop(None)
