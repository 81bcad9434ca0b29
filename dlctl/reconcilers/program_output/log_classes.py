"""Classes of log lines: what a phrase in a program's output says about its end.

Phrases are in lower case and searched as they are, without patterns.
"""

import enum
import re
from typing import Final

import attrs

from dlctl.api.status.verdict import Cause


class Weight(enum.IntEnum):
    """Whether evidence shows a cause or what follows from the end of another replica."""

    CAUSE = enum.auto()
    # It may be a consequence: an abort, or a timeout of a collective operation.
    AMBIGUOUS = enum.auto()
    COLLATERAL = enum.auto()


@attrs.frozen
class LogClass:
    """Phrases with one meaning."""

    cause: Cause
    weight: Weight
    phrases: tuple[str, ...]


HARDWARE: Final = LogClass(
    Cause.HARDWARE,
    Weight.CAUSE,
    (
        "uncorrectable ecc", "cuda_error_ecc_uncorrectable", "fallen off the bus", "gpu is lost",
        "invalid access of peer gpu memory over nvlink", "uncorrectable nvlink error",
        "cuda error: hardware stack error", "unable to determine the device handle for gpu",
    ),
)  # fmt: skip
# As checks before a training print it.
_NONE_BEFORE: Final = re.compile(r"\b(?:no|without|zero|(?<!gpu )(?<!device )0)(?: \w{1,20})? $")
_NONE_AFTER: Final = re.compile(r"[a-z_ ]{0,40}(?:[:=] ?(?:0|none|no)\b|not found|not detected)")
_CAUSES: Final = (
    LogClass(
        Cause.OUT_OF_MEMORY,
        Weight.CAUSE,
        (
            "cuda out of memory", "cuda error: out of memory", "hip out of memory",
            "cuda_error_out_of_memory", "outofmemoryerror", "resource_exhausted: out of memory",
            "oom when allocating tensor", "defaultcpuallocator: can't allocate memory",
            "std::bad_alloc", "cannot allocate memory",
        ),
    ),
    LogClass(
        Cause.CONFIGURATION,
        Weight.CAUSE,
        (
            "no space left on device", "disk quota exceeded", "insufficient shared memory (shm)",
            "unable to open shared memory object", "read-only file system",
            "no cuda gpus are available", "no cuda-capable device is detected",
            "found no nvidia driver on your system",
            "there are not enough slots available", "detected an attempt to run as root",
        ),
    ),
    LogClass(
        Cause.BAD_COMMAND_OR_IMAGE,
        Weight.CAUSE,
        (
            "executable file not found", "exec format error",
            "error while loading shared libraries",
            "unable to find the specified executable file", "execvp error on file",
            "was unable to launch the specified application",
        ),
    ),
    LogClass(Cause.USER_CODE, Weight.CAUSE, ("device-side assert",)),
)  # fmt: skip
_AMBIGUOUS: Final = (
    LogClass(
        Cause.USER_CODE,
        Weight.AMBIGUOUS,
        ("illegal memory access", "unspecified launch failure", "unhandled cuda error"),
    ),
    LogClass(
        Cause.HANG,
        Weight.AMBIGUOUS,
        (
            "watchdog caught collective operation timeout",
            "watchdog got stuck",
            "timed out waiting",
            "socket timeout",
            "waiting for clients",
            "monitoredbarrier",
            "timeout caused pair closure",
            "barrier timed out",
        ),
    ),
)
COLLATERAL: Final = LogClass(
    Cause.UNKNOWN,
    Weight.COLLATERAL,
    (
        "remote process exited or there was a network error", "ncclremoteerror", "socketprogress",
        "connection closed by peer", "connection closed by remote peer", "connection reset by peer",
        "connection refused", "broken pipe", "socket closed", "recvvalue", "ncclsystemerror",
        "unhandled system error", "rendezvousclosederror", "rendezvousconnectionerror",
        "distnetworkerror", "diststoreerror", "the client socket has", "another task died",
        "jax distributed service detected", "stopped sending heartbeats",
        "connect with a different incarnation", "failed to connect to all addresses",
        "coordination service", "horovodinternalerror", "horovod has been shut down",
        "got signal: 15", "could not resolve hostname", "has lost communication with a remote",
    ),
)  # fmt: skip
# The strongest first: a line that says several things is of the first class.
_CLASSES: Final = (HARDWARE, *_CAUSES, COLLATERAL, *_AMBIGUOUS)
# Lines that say what to do, not what happened.
_ADVICE: Final = (
    "cuda_launch_blocking", "torch_use_cuda_dsa", "cuda kernel errors might be asynchronously",
    "to enable traceback see", "nccl_debug=info for details", "this typically refers to a problem",
    "please see the faq", "per user-direction, the job has been aborted",
    "you can ignore the below",
    "cleaning up remaining processes", "primary job  terminated normally",
)  # fmt: skip


def class_of(line: str) -> LogClass | None:
    """Return the class of a line; None if it is of none."""
    text = line.lower()
    found = next((each for each in _CLASSES if any(p in text for p in each.phrases)), None)
    return None if found is HARDWARE and _is_healthy(text) else found


def _is_healthy(text: str) -> bool:
    """Return whether a line in lower case says that none of these errors was found."""
    return any(
        _NONE_BEFORE.search(before) or _NONE_AFTER.match(after)
        for phrase in HARDWARE.phrases
        for before, found, after in [text.partition(phrase)]
        if found
    )


def is_of(log_class: LogClass, text: str) -> bool:
    """Return whether a text has a phrase of a class."""
    lowered = text.lower()
    return any(phrase in lowered for phrase in log_class.phrases)


def is_advice(line: str) -> bool:
    """Return whether a line is advice, which is never a cause."""
    text = line.lower()
    return any(phrase in text for phrase in _ADVICE)
