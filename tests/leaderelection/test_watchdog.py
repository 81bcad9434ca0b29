"""The real watchdog, in processes that hang in different ways."""

import subprocess
import sys
import textwrap
import time

import pytest

_PRELUDE = """
    import os, re, time
    from dlctl.leaderelection.watchdog import ProcessWatchdog

    watchdog = ProcessWatchdog()
    watchdog.arm(60)
"""


def outcome(program: str) -> tuple[int, float]:
    """Run a program; return its exit code, and for how long it hung."""
    code = textwrap.dedent(_PRELUDE) + textwrap.dedent(program)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "armed\n"
        began = time.monotonic()
        process.wait(10)
        return process.returncode, time.monotonic() - began


@pytest.mark.parametrize(
    "hangs",
    [
        pytest.param("time.sleep(60)", id="asleep"),
        # The match never ends, and does not let any other thread run.
        pytest.param("re.match('(a+)+$', 'a' * 64 + 'b')", id="with the interpreter's lock"),
        pytest.param("while True: os.write(2, b'x' * 65536)", id="in a log that nobody reads"),
    ],
)
def test_hanging_process_is_killed(hangs: str) -> None:
    code, hung_s = outcome(f"watchdog.arm(0.3)\nprint('armed', flush=True)\n{hangs}")
    assert code == 1
    assert hung_s < 2


def test_process_that_rearms_or_disarms_the_watchdog_lives() -> None:
    code, _ = outcome("""
        print("armed", flush=True)
        for _ in range(4):
            watchdog.arm(1)
            time.sleep(0.3)
        watchdog.disarm()
        time.sleep(1.2)
        os._exit(42)
    """)
    assert code == 42
