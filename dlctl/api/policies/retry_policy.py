"""Which failures of a replica are retried: the meaning of restart policies, by exit code.

For codes that the table of :mod:`dlctl.api.exit_codes` does not list, API groups differ.
"""

import enum

from dlctl.api.exit_codes import CLASS_BY_CODE, SIGNAL_BASE, ExitClass


class RetryPolicy(enum.Enum):
    """Which failures of a replica's program are retried."""

    # Codes that the table classifies as retryable, and no other signals.
    TABLE = enum.auto()
    # Codes that the table classifies as retryable, and all signals that it does not list.
    TABLE_AND_SIGNALS = enum.auto()
    # Every code from 128 on, like Kubeflow's ExitCode.
    SIGNALS = enum.auto()
    ALL = enum.auto()
    NONE = enum.auto()

    @property
    def uses_table(self) -> bool:
        """Return whether the table classifies exit codes."""
        return self in (RetryPolicy.TABLE, RetryPolicy.TABLE_AND_SIGNALS)

    @property
    def goes_by_exit_code(self) -> bool:
        """Return whether some exit codes are retried and others are not."""
        return self not in (RetryPolicy.ALL, RetryPolicy.NONE)

    @property
    def judges_init_containers(self) -> bool:
        """Return whether the exit codes of init containers count as the program's do.

        Kubeflow's ExitCode looks at the program's only, and restarts pods whose program never ran.
        """
        return self not in (RetryPolicy.SIGNALS, RetryPolicy.TABLE_AND_SIGNALS)

    def exit_class(self, code: int) -> ExitClass:
        """Return the class of an exit code."""
        if code == 0:
            return ExitClass.SUCCESS
        if self.uses_table and code in CLASS_BY_CODE:
            return CLASS_BY_CODE[code]
        by_signal = code >= SIGNAL_BASE or code < 0
        retried = self is RetryPolicy.ALL or (
            by_signal and self in (RetryPolicy.SIGNALS, RetryPolicy.TABLE_AND_SIGNALS)
        )
        return ExitClass.RETRYABLE if retried else ExitClass.PERMANENT
