"""The controller's settings, their defaults and the relations between them.

Durations are seconds. A setting that makes no sense is refused here, before anything starts.
"""

import attrs

from dlctl.errors import ConfigError


@attrs.frozen(kw_only=True)
class Options:
    """Everything that can be set about the controller; one field, one flag."""

    # Watch this namespace alone; empty for all of them.
    namespace: str = ""
    # Reconciliations at a time, for each kind.
    workers: int = 4
    # A reconciliation that takes longer is cancelled and tried again.
    reconcile_timeout_s: float = 120.0
    # Back-off of a replica that was lost: first wait, longest wait, run that starts anew.
    restart_backoff_s: float = 10.0
    restart_backoff_cap_s: float = 300.0
    restart_backoff_reset_s: float = 600.0
    # How long workers may go on after the program was told to stop.
    grace_s: float = 30.0
    # Where /metrics, /healthz and /readyz are served; empty for nowhere.
    bind_address: str = ":8080"
    log_format: str = "console"
    log_level: str = "info"

    def __attrs_post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"workers is {self.workers}: at least 1 is needed")
        if not 0 < self.restart_backoff_s <= self.restart_backoff_cap_s:
            raise ConfigError(
                f"restart-backoff is {self.restart_backoff_s:g} s: it must be above 0 and not "
                f"above restart-backoff-cap, {self.restart_backoff_cap_s:g} s"
            )
        if self.reconcile_timeout_s <= 0 or self.grace_s < 0:
            raise ConfigError("reconcile-timeout must be above 0, and grace not below it")
