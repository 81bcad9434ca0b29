"""What holds for all tests."""

import asyncio
import signal

from hypothesis import HealthCheck, settings

# Otherwise pytest-asyncio asks for the current loop between two tests, Python 3.11 makes one, and
# nobody closes it: the warning would fail whichever test is next.
asyncio.set_event_loop(None)

# In the background of a shell it is ignored, and tests end what they start by it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast a machine is, and how busy, says nothing about the code.
settings.register_profile("dlctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dlctl")
