import asyncio

# Otherwise pytest-asyncio finds, before the first asynchronous test, an event loop that asyncio has
# made on demand and that nobody closes; when it is collected, some innocent test fails.
asyncio.set_event_loop(None)
