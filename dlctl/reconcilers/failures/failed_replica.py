"""One replica of a failed attempt, with all that is known about its end."""

import datetime

import attrs

from dlctl.api.job import Replica
from dlctl.api.objects.pods import ContainerStateTerminated, Pod
from dlctl.reconcilers.nodes.node_states import NodeState
from dlctl.reconcilers.termination import Termination


@attrs.frozen
class FailedContainer:
    """A container that failed, and how."""

    name: str
    end: ContainerStateTerminated
    # True if the kubelet has run it again since.
    is_previous: bool


@attrs.frozen
class FailedReplica:
    """A replica whose run ended, with all evidence of why."""

    replica: Replica
    pod: Pod
    # None for a pod that was deleted, as by preemption, or that never started.
    termination: Termination | None
    # The end of the container's log, if it was read.
    log: str = ""
    # The state of the pod's node, if that has a fault.
    faulty_node: NodeState | None = None

    @property
    def node(self) -> str:
        """Return the name of the pod's node; empty if it has none."""
        return self.pod.node_name

    def time(self, now: datetime.datetime) -> datetime.datetime:
        """Return when its run ended, or when it was asked to."""
        if self.termination is not None:
            return self.termination.time
        return min(self.asked_to_end_at or now, now)

    @property
    def asked_to_end_at(self) -> datetime.datetime | None:
        """Return when its pod was disrupted or deleted, by the server's clock, if it was."""
        disrupted = self.pod.condition("DisruptionTarget")
        since = disrupted.last_transition_time if disrupted else None
        return since or self.pod.metadata.deletion_requested_at

    def termination_message(self, container: str) -> str:
        """Return what the program left as its last words: a file, or the end of its log."""
        failed = self.failed_container(container)
        return failed.end.message or "" if failed else ""

    def failed_container(self, container: str) -> FailedContainer | None:
        """Return the container of the program, or else an init container, if it has failed."""
        status = self.pod.container_status(container)
        for each in (*([status] if status else []), *self.pod.regular_init_statuses):
            for state in (each.state, each.last_state):
                end = state.terminated if state else None
                if end is not None and end.exit_code:
                    return FailedContainer(each.name, end, is_previous=state is each.last_state)
        return None
