"""Scalers apart from their jobs: finished ones expire, and those without a job fail.

While the job exists, its own reconciler processes the scaler.
"""

import datetime
from typing import Final

import attrs

from dlctl.api.meta import ObjectKey, Resource
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.scalers import FailedStep, ScaleFailure, Scaler, ScalerObject, ScalerPhase
from dlctl.clock import Clock
from dlctl.controller.controller import Result
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.object_writer import patch_if_unchanged
from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.reconcilers.membership.scaler_index import read_scaler

# A job may be applied a little later than its scaler.
GRACE_S: Final = 120.0


@attrs.frozen
class ScalerReconciler:
    """Deletes finished scalers of one kind after ``ttl_s``, and fails those without a job."""

    dialect: ElasticDialect
    resource: Resource
    scalers: Store[ScalerObject]
    job_kind: str
    jobs: Store[JobObject]
    client: Client
    recorder: EventRecorder
    clock: Clock
    # Seconds after the end; 0 keeps finished scalers.
    ttl_s: float = 0.0

    async def reconcile(self, key: ObjectKey) -> Result:
        """Advance a scaler by one step, unless its job's reconciler does."""
        obj = self.scalers.get(key)
        if obj is None or obj.metadata.is_terminating:
            return Result()
        scaler = read_scaler(self.dialect, self.resource, obj)
        try:
            if scaler.status.phase.finished:
                return await self._expire(obj, scaler)
            return await self._fail_without_job(obj, scaler)
        except NotFoundError:
            return Result()
        except ConflictError as error:
            return Result(requeue=True, error=error)

    async def _expire(self, obj: ScalerObject, scaler: Scaler) -> Result:
        if not self.ttl_s:
            return Result()
        ended = max(
            (c.last_transition_time for c in scaler.status.conditions), default=scaler.created
        )
        left_s = self._left_s(ended, self.ttl_s)
        if left_s > 0:
            return Result(requeue_after_s=left_s)
        await self.client.delete(self.resource, obj.key, uid=obj.metadata.uid)
        return Result()

    async def _fail_without_job(self, obj: ScalerObject, scaler: Scaler) -> Result:
        if ObjectKey(scaler.key.namespace, scaler.job) in self.jobs:
            # The job may be deleted before it has started to process the scaler.
            return Result(requeue_after_s=GRACE_S)
        left_s = self._left_s(scaler.created, GRACE_S)
        # No job that is applied later is that of a scaler that names none.
        if scaler.job and left_s > 0:
            return Result(requeue_after_s=left_s)
        failure = ScaleFailure(f"there is no {self.job_kind} {scaler.key.namespace}/{scaler.job}")
        if scaler.invalid_reason:
            failure = ScaleFailure(scaler.invalid_reason, FailedStep.SELECT_WORKERS)
        ended = self.dialect.conditions.scaler_finished(scaler, self.clock.now(), failure)
        conditions = (*scaler.status.conditions, ended)
        failed = attrs.evolve(scaler.status, phase=ScalerPhase.FAILED, conditions=conditions)
        body = {"status": self.dialect.scalers.write_status(failed, self.resource)}
        await patch_if_unchanged(self.client, self.resource, obj, body, subresource="status")
        self.recorder.record(self.resource, obj.metadata, "Warning", ended.reason, ended.message)
        return Result()

    def _left_s(self, since: datetime.datetime, limit_s: float) -> float:
        return limit_s - (self.clock.now() - since).total_seconds()
