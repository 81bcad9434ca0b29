"""Events about jobs, in the form of the operators that users know."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.meta import BATCH_JOBS, PODS, SERVICES, Object, Resource
from dlctl.api.objects.pods import Pod
from dlctl.controller.event_recorder import EventRecorder
from dlctl.reconcilers.events.pod_events import batch_messages

SUCCESSFUL_CREATE: Final = "SuccessfulCreate"
SUCCESSFUL_DELETE: Final = "SuccessfulDelete"
POD_FORCE_DELETED: Final = "PodForceDeleted"
SECRET_EXISTS: Final = "SecretExists"


@attrs.frozen
class JobEvents:
    """Records events about jobs of one kind."""

    resource: Resource
    recorder: EventRecorder
    # True if each of a few children gets an event of its own.
    per_child: bool = False

    def record(self, obj: Object, note: EventNote, source: str = "") -> None:
        self.recorder.record(
            self.resource, obj.metadata, note.type, note.reason, note.message, source=source
        )

    def record_all(self, job: Job, obj: Object, notes: Iterable[EventNote]) -> None:
        """Record events with the source that the job's users expect."""
        for note in notes:
            self.record(obj, note, job.messages.event_source)

    def created(
        self,
        job: Job,
        obj: Object,
        created: Mapping[Resource, Collection[str]],
        types: Iterable[str],
    ) -> None:
        """Record created children; ``types`` are replica types with a different scheduler."""
        for resource in (SERVICES, PODS, BATCH_JOBS):
            names, reason = created.get(resource, ()), SUCCESSFUL_CREATE
            if job.messages.emits_child_kinds:
                reason += resource.kind
            messages = self._messages("Created", resource, names)
            self.record_all(job, obj, (EventNote("Normal", reason, m) for m in messages))
        # Workers come and go: the launcher's Job is created once.
        if (BATCH_JOBS if job.launcher_job else PODS) not in created:
            return
        warnings = [EventNote("Warning", w.reason, w.message) for w in job.warnings]
        if types := sorted(types):
            reason = job.messages.other_scheduler_reason
            warnings.append(EventNote("Warning", reason, _other_scheduler(job, types)))
        self.record_all(job, obj, warnings)

    def found_secrets(self, job: Job, obj: Object, names: Iterable[str]) -> None:
        """Record that Secrets are used which the controller has found and may not read."""
        reason = job.messages.name_conflict_reason or SECRET_EXISTS
        for name in names:
            message = (
                f'Resource "{name}" of Kind "Secret" already exists, and its keys are used: if it '
                f"was not made for this {job.resource.kind}, delete it, and create the job again"
            )
            self.record_all(job, obj, [EventNote("Warning", reason, message)])

    def deleted(self, job: Job, obj: Object, deleted: Sequence[tuple[Resource, Object]]) -> None:
        if not job.messages.emits_pod_events:
            return
        for resource in (PODS, SERVICES, BATCH_JOBS):
            reason = SUCCESSFUL_DELETE + resource.kind
            names = [child.metadata.name for of, child in deleted if of == resource]
            messages = self._messages("Deleted", resource, names)
            self.record_all(job, obj, (EventNote("Normal", reason, m) for m in messages))

    def _messages(self, verb: str, resource: Resource, names: Collection[str]) -> list[str]:
        return batch_messages(verb, resource.kind, names, per_child=self.per_child)

    def force_deleted(self, job: Job, obj: Object, pod: Pod) -> None:
        node = pod.node_name or "unknown"
        message = (
            f"Deleted pod {pod.metadata.name} without confirmation from its node {node}: "
            "if the node is merely cut off, the old process may still run there"
        )
        self.record_all(job, obj, [EventNote("Warning", POD_FORCE_DELETED, message)])

    def ttl_expired(self, job: Job, obj: Object) -> None:
        reason = job.messages.ttl_deletion_reason()
        self.record_all(job, obj, [EventNote("Normal", reason, f"Deleted job: {job.key.name}")])


def _other_scheduler(job: Job, types: Iterable[str]) -> str:
    return (
        f"the pods of {', '.join(types)} set a schedulerName other than the gang scheduler "
        f"{job.defaults.gang_scheduler_name}: it is kept, and they may start without the gang"
    )
