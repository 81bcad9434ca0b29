"""The ``restartPolicy`` of replica specs, which differs slightly from that of pods."""

import enum


class RestartPolicy(enum.StrEnum):
    """Whether a failed replica is restarted."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"
    # Its exit code decides, and the controller, not the kubelet, restarts it.
    EXIT_CODE = "ExitCode"

    @property
    def pod_restart_policy(self) -> str:
        """Return the restart policy of the replica's pod."""
        return "Never" if self is RestartPolicy.EXIT_CODE else self.value
