"""Programs that end by an exit code or a signal, while the other replica of the job runs."""

from typing import Final

from dlctl.api.status.verdict import Cause
from tests.faults.fault import Blame, Fault, ddp, python, shell

USER: Final = Cause.USER_CODE
# Of the second rank alone.
_EXIT: Final = '[ "$RANK" = 0 ] && exec sleep 60; exit {}'
_SIGNAL: Final = """
import ctypes, os, signal, sys, time
if os.environ["RANK"] == "0":
    time.sleep(60)
{}
"""

_CODES: Final = {
    1: (USER, ""),
    2: (USER, ""),
    3: (USER, "exit code 3"),
    93: (USER, "not to be restarted"),
    126: (Cause.BAD_COMMAND_OR_IMAGE, ""),
    127: (Cause.BAD_COMMAND_OR_IMAGE, ""),
    128: (USER, ""),
    # Whoever sent the signal is not known: it may be the program itself.
    130: (Cause.UNKNOWN, "SIGINT"),
    143: (Cause.UNKNOWN, "SIGTERM"),
    137: (Cause.UNKNOWN, "SIGKILL"),
    138: (USER, ""),
    255: (USER, ""),
}
_SIGNALS: Final = {
    "segmentation-fault": ("ctypes.string_at(0)", 139, "SIGSEGV"),
    "abort": ("os.abort()", 134, "SIGABRT"),
    "floating-point-exception": ("os.kill(os.getpid(), signal.SIGFPE); time.sleep(9)", 136, "FPE"),
    "bus-error": ("os.kill(os.getpid(), signal.SIGBUS); time.sleep(9)", 135, "SIGBUS"),
}

FAULTS: Final = [
    *(
        Fault(
            f"exit-{code}",
            ddp(shell(_EXIT.format(code))),
            Blame(cause, "worker-0", code),
            says,
        )
        for code, (cause, says) in _CODES.items()
    ),
    *(
        Fault(name, ddp(python(_SIGNAL.format(act))), Blame(USER, "worker-0", code), says)
        for name, (act, code, says) in _SIGNALS.items()
    ),
]
