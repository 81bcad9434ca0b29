"""Evidence from an exit code alone about why a program ended."""

from collections.abc import Mapping
from typing import Final

from dlctl.api.exit_codes import describe_exit_code
from dlctl.api.status.verdict import Cause, Confidence
from dlctl.reconcilers.failures.evidence import Evidence, Proof
from dlctl.reconcilers.program_output.log_classes import Weight

# Somebody stopped it: what the program has logged before is not why it ended.
STOPPED: Final = frozenset({129, 130, 143})
KILLED: Final = 137
# Without a text, it is the usual one of the code.
_MEANINGS: Final[Mapping[int, tuple[Cause, Weight, str]]] = {
    # nvidia-resiliency-ext's code for failures that a restart would repeat.
    93: (Cause.USER_CODE, Weight.CAUSE, "the program asks not to be restarted"),
    126: (Cause.BAD_COMMAND_OR_IMAGE, Weight.CAUSE, ""),
    127: (Cause.BAD_COMMAND_OR_IMAGE, Weight.CAUSE, ""),
    # The sender of one of these signals has a reason of its own, such as the end of another
    # process. It may be the program itself: the platform is blamed only for a reason in the API.
    129: (Cause.UNKNOWN, Weight.COLLATERAL, "stopped (SIGHUP)"),
    130: (Cause.UNKNOWN, Weight.COLLATERAL, "stopped (SIGINT)"),
    143: (Cause.UNKNOWN, Weight.COLLATERAL, ""),
    # Libraries abort when a peer is gone, and when a check of their own fails.
    134: (Cause.USER_CODE, Weight.AMBIGUOUS, "aborted (SIGABRT)"),
    KILLED: (Cause.UNKNOWN, Weight.CAUSE, "killed (SIGKILL), no memory limit reported"),
}


def exit_code_evidence(code: int) -> Evidence:
    """Return what an exit code proves; signals are 128 + n."""
    cause, weight, meaning = _MEANINGS.get(code, (Cause.USER_CODE, Weight.CAUSE, ""))
    return Evidence(
        cause,
        Proof.EXIT_CODE,
        f"exit code {code}: {meaning or describe_exit_code(code)}",
        Confidence.LOW,
        weight,
        exit_code=code,
    )
