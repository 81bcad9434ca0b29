"""The processor time and the memory of a process, as the system counts them."""

import os
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def machine_idle_s() -> float:
    """Return the time that the cores have been idle since the start, all together."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(fields[4]) / _TICKS_PER_S


def rss_mb(pid: int) -> float:
    return _memory_mb(pid, "VmRSS")


def peak_rss_mb(pid: int) -> float:
    return _memory_mb(pid, "VmHWM")


def _memory_mb(pid: int, field: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024
