"""What ``restartPolicy`` of a replica spec says, which is not quite what a pod's says."""

import enum


class RestartPolicy(enum.StrEnum):
    """Whether a replica that fails runs again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"
    # Its exit code decides, and the controller, not the kubelet, runs it again.
    EXIT_CODE = "ExitCode"

    @property
    def pod_restart_policy(self) -> str:
        """Return the restart policy of the replica's pod."""
        return "Never" if self is RestartPolicy.EXIT_CODE else self.value
