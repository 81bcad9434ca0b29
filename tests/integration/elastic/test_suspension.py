"""Suspension of elastic jobs, by their spec or by et-operator's annotation."""

import asyncio
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.objects.jobs import MAX_STORED_BYTES
from tests.dialects.et_operator.manifests import elastic_job
from tests.integration.stored_jobs import busy_reader, with_large_template
from tests.support.elastic_harness import ONE, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

LAUNCHER: Final = "linear-launcher"
SUSPENDED: Final = "job-supervisor.kube-ai.io/job-suspended"
WAITS_FOR_RESOURCES: Final = "TrainingJob linear is waiting resource timeout."


@pytest.mark.parametrize("by", ["annotation", "spec"])
async def test_resumed_job_has_the_same_number_of_workers(by: str) -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        await stage.edit(_suspend(by, suspended=True))
        await stage.cluster.until(lambda: stage.cluster.phase() == "Suspended")
        await stage.cluster.until(lambda: stage.left() == [] and not stage.uid(LAUNCHER))
        await stage.cluster.settled()
        assert stage.hosts() == []
        await stage.edit(_suspend(by, suspended=False))
        await stage.until_running()
        await stage.cluster.settled()
        assert stage.members() == [0, 1, 2]
        assert stage.is_consistent()


async def test_annotation_suspends_a_job_with_one_condition_and_leaves_the_others() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2)
        before = stage.condition_statuses()
        await stage.edit(_suspend("annotation", suspended=True))
        await stage.cluster.until(lambda: stage.cluster.phase() == "Suspended")
        await stage.cluster.settled()
        assert stage.condition_statuses() == {**before, "Waiting": "True", "Suspended": "True"}
        assert stage.cluster.condition("Suspended") == WAITS_FOR_RESOURCES
        assert stage.event_messages("WaitingResourceTimeout") == [WAITS_FOR_RESOURCES]
        await stage.edit(_suspend("annotation", suspended=False))
        await stage.cluster.until(lambda: stage.cluster.phase() == "Created")
        assert stage.condition_statuses()["Running"] == "False"
        await stage.until_running()
        assert stage.condition_statuses() == {**before, "Suspended": "False"}


async def test_job_created_suspended_by_annotation_is_created_once_resumed() -> None:
    async with start_elastic_cluster() as stage:
        await stage.submit(annotations={SUSPENDED: "true"})
        await stage.cluster.settled()
        assert stage.cluster.phase() == "Suspended"
        assert stage.condition_statuses() == {"Waiting": "True", "Suspended": "True"}
        assert "startTime" not in stage.cluster.status()
        await stage.edit(_suspend("annotation", suspended=False))
        await stage.until_running()
        assert stage.condition_statuses()["Created"] == "True"


async def test_annotation_that_is_set_while_a_large_spec_is_read_is_not_missed() -> None:
    job = with_large_template(elastic_job(), "x" * MAX_STORED_BYTES)
    async with start_elastic_cluster() as stage, asyncio.TaskGroup() as tasks:
        cluster = stage.cluster
        # Once its status is kept, the first ones of others may be written after their pods.
        await stage.running(2, name="first")
        created = len(cluster.history.created)
        with busy_reader(tasks, cluster.namespace):
            await cluster.submit(job)
            await cluster.advance(0.1)
            await stage.edit(_suspend("annotation", suspended=True))
            await cluster.advance(0.1)
        await cluster.until(lambda: cluster.phase() == "Suspended")
        await cluster.settled()
        assert len(cluster.history.created) == created


async def test_suspending_a_finished_job_changes_nothing() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        await stage.end(LAUNCHER)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Succeeded")
        await stage.edit(_suspend("annotation", suspended=True))
        await stage.cluster.settled()
        assert stage.cluster.phase() == "Succeeded"
        assert stage.uid(LAUNCHER)


async def test_job_created_suspended_has_no_pods() -> None:
    async with start_elastic_cluster() as stage:
        await stage.submit(suspend=True)
        await stage.cluster.settled()
        assert stage.cluster.phase() == "Suspended"
        assert stage.left() == []
        await stage.edit({"spec": {"suspend": False}})
        await stage.until_running()


def _suspend(by: str, *, suspended: bool) -> JSON:
    if by == "spec":
        return {"spec": {"suspend": suspended}}
    return {"metadata": {"annotations": {SUSPENDED: "true" if suspended else None}}}
