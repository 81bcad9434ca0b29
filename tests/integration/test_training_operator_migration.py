"""Migration from training-operator, with jobs in every state.

Jobs are created as v1.9 leaves them: children without our label, statuses without ``dlctl``.
"""

from collections.abc import Mapping, Sequence

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY_LABEL, PODS, SERVICES
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.builders import renderer_of, template
from tests.integration.kubeflow import lift_rules
from tests.integration.tfjobs_left_behind import (
    AT_END,
    CREATED,
    KIND,
    RUN,
    RUNNING,
    RUNS,
    STOPPED,
    SUCCEEDED,
    labelled,
    left_behind,
    make_children,
    phases,
    tf_job,
    timestamp,
    uids,
)
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Exit, Outcome


async def wait_labelled(cluster: ClusterHarness, number: int) -> None:
    """Wait until this many children are labelled, and no longer."""
    while labelled(cluster) < number:
        cluster.history.changed.clear()
        await cluster.history.changed.wait()


def watch_statuses(cluster: ClusterHarness) -> list[JSON]:
    """Return a list to which every later status of a TFJob is added."""
    seen: list[JSON] = []

    def notice(change: StorageEvent) -> None:
        if change.table == table_of(KIND.resource) and change.new is not None:
            seen.append(change.new.decoded(KIND.resource).get("status") or {})

    cluster.server.storage.observers.append(notice)
    return seen


def without_memory(status: JSON) -> JSON:
    return {field: value for field, value in status.items() if field != "dlctl"}


async def test_running_job_is_adopted_unchanged(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        await left_behind(cluster, tf_job(), CREATED, RUNNING, **RUN)
        before, children = cluster.status(), uids(cluster)
        statuses = watch_statuses(cluster)
        cluster.start()
        await cluster.until(lambda: labelled(cluster) == 8)
        await cluster.settled()
        assert uids(cluster) == children
        assert cluster.phase() == "Running"
        # No count decreases in between, and no message changes.
        assert [without_memory(status) for status in statuses] == [before] * len(statuses)
        assert len(statuses) == 1
        assert "SuccessfulCreatePod" not in cluster.events()


async def test_managed_by_label_of_the_template_is_kept_on_adopted_pods(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        manifest = tf_job()
        helm = {"app.kubernetes.io/managed-by": "Helm"}
        for spec in manifest["spec"]["tfReplicaSpecs"].values():
            spec["template"]["metadata"] = {"labels": helm}
        await left_behind(cluster, manifest, CREATED, RUNNING, **RUN)
        cluster.start()
        await cluster.until(lambda: labelled(cluster) == 8)
        await cluster.settled()
        assert len(cluster.pods()) == 4
        assert all(helm.items() <= p["metadata"]["labels"].items() for p in cluster.objects(PODS))


async def test_adopted_job_ends_like_any_other(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        await left_behind(cluster, tf_job(cleanPodPolicy="Running"), CREATED, RUNNING, **RUN)
        cluster.start()
        await cluster.until(lambda: cluster.phase() == "Running")
        chief = next(p for p in cluster.objects(PODS) if "chief" in p["metadata"]["name"])
        await cluster.node.finish(chief["metadata"]["uid"])
        await cluster.ended()
        await cluster.until(lambda: len(cluster.pods()) == 1)
        assert [c["type"] for c in cluster.status()["conditions"]] == [
            "Created",
            "Running",
            "Succeeded",
        ]


async def test_end_of_a_job_between_operators_is_noticed_at_once(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        outcomes = {**RUNS, "chief-0": [DONE]}
        await left_behind(cluster, tf_job(), CREATED, RUNNING, outcomes=outcomes, **RUN)
        await cluster.until(lambda: "Succeeded" in phases(cluster))
        cluster.start()
        await cluster.ended()
        expected = f"TFJob {cluster.namespace}/linear successfully completed."
        assert cluster.condition("Succeeded") == expected
        assert all(count == 1 for count in cluster.history.created.values())


async def test_replica_that_failed_between_operators_is_restarted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        outcomes: Mapping[str, Sequence[Outcome]] = {**RUNS, "worker-1": [Exit(143), KEEPS_RUNNING]}
        await left_behind(cluster, tf_job("ExitCode"), CREATED, RUNNING, outcomes=outcomes, **RUN)
        await cluster.until(lambda: "Failed" in phases(cluster))
        cluster.start()
        await cluster.until(lambda: max(cluster.history.created.values()) == 2)
        await cluster.until(lambda: phases(cluster) == ["Running"] * 4)
        await cluster.until(lambda: cluster.condition("Running"))
        assert sum(cluster.history.created.values()) == 5
        assert not cluster.history.violations


async def test_finished_job_stays_finished(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        outcomes = {**RUNS, "chief-0": [DONE]}
        done = timestamp(cluster.clock.now())
        stated = (CREATED, STOPPED, SUCCEEDED)
        await left_behind(
            cluster, tf_job(), *stated, outcomes=outcomes, completionTime=done, **AT_END
        )
        before, children = cluster.status(), uids(cluster)
        cluster.start()
        await cluster.until(lambda: cluster.phase() == "Done")
        await cluster.settled()
        assert without_memory(cluster.status()) == before
        assert uids(cluster) == children
        assert "TFJobSucceeded" not in cluster.events()


@pytest.mark.parametrize("policy", ["None", "Running"])
async def test_edit_cleans_up_a_job_that_had_ended_before_the_migration(
    policy: str, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        outcomes = {**RUNS, "chief-0": [DONE]}
        done = timestamp(cluster.clock.now())
        stated = (CREATED, STOPPED, SUCCEEDED)
        manifest = tf_job(cleanPodPolicy=policy)
        await left_behind(
            cluster, manifest, *stated, outcomes=outcomes, completionTime=done, **AT_END
        )
        cluster.start()
        await cluster.until(lambda: cluster.phase() == "Done")
        assert cluster.pods()
        edit = {"spec": {"runPolicy": {"cleanPodPolicy": "All"}}}
        await cluster.user.patch(KIND.resource, cluster.key(), edit)
        await cluster.until(lambda: not cluster.pods() and not cluster.services())
        await cluster.until(lambda: cluster.phase() == "Done")


async def test_interrupted_clean_up_is_finished(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        done = timestamp(cluster.clock.now())
        stated = (CREATED, STOPPED, SUCCEEDED)
        manifest = tf_job(cleanPodPolicy="All")
        await left_behind(cluster, manifest, *stated, completionTime=done, **AT_END)
        cluster.start()
        await cluster.ended()
        await cluster.until(lambda: not cluster.pods() and not cluster.services())


@pytest.mark.parametrize("said", [True, False])
async def test_ttl_that_began_before_the_migration_expires(
    said: bool, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        stated = (CREATED, STOPPED, ("Failed", True, 'job "linear" is failing'))
        # After a permanent exit code, training-operator does not record the time.
        ended: JSON = {"completionTime": timestamp(cluster.clock.now())} if said else {}
        manifest = tf_job(ttlSecondsAfterFinished=3)
        await left_behind(cluster, manifest, *stated, children=False, **ended)
        statuses = watch_statuses(cluster)
        cluster.start()
        await cluster.until(lambda: not cluster.objects(KIND.resource))
        assert statuses[-1]["dlctl"]["phase"] == "Done"
        assert statuses[-1]["completionTime"]


async def test_suspended_job_stays_suspended_and_can_be_resumed(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        stated = (
            CREATED,
            ("Running", False, "is suspended."),
            ("Suspended", True, "is suspended."),
        )
        await left_behind(cluster, tf_job(suspend=True), *stated, children=False)
        before = cluster.status()["conditions"]
        cluster.start()
        await cluster.until(lambda: cluster.phase() == "Suspended")
        await cluster.settled()
        waiting, *others = cluster.status()["conditions"]
        assert (waiting["type"], others) == ("Waiting", before)
        assert not cluster.pods()
        body = {"spec": {"runPolicy": {"suspend": False}}}
        await cluster.user.patch(KIND.resource, cluster.key(), body)
        await cluster.until(lambda: cluster.phase() == "Running")
        assert [(c["type"], c["status"]) for c in cluster.status()["conditions"]] == [
            ("Created", "True"),
            ("Suspended", "False"),
            ("Running", "True"),
        ]


@pytest.mark.parametrize("writes", range(1, 8, 2))
async def test_controller_killed_during_adoption_loses_nothing(
    writes: int, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        await left_behind(cluster, tf_job(), CREATED, RUNNING, **RUN)
        before, children = cluster.status(), uids(cluster)
        first = cluster.start()
        await wait_labelled(cluster, writes)
        await first.kill()
        cluster.start()
        await cluster.until(lambda: labelled(cluster) == 8)
        await cluster.until(lambda: "dlctl" in cluster.status())
        await cluster.settled()
        assert uids(cluster) == children
        assert without_memory(cluster.status()) == before


async def test_created_job_without_pods_starts(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        renderer = renderer_of(await left_behind(cluster, tf_job(), CREATED, children=False))
        service = renderer.service(next(iter(renderer.job.replicas)))
        del service["metadata"]["labels"][MANAGED_BY_LABEL]
        await cluster.user.create(SERVICES, cluster.namespace, service)
        cluster.start()
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.until(lambda: labelled(cluster) == 8)
        assert len(cluster.services()) == 4


async def test_children_of_a_job_without_a_status_are_adopted_too(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        job = await cluster.submit(tf_job(), RUNS)
        await make_children(cluster, job)
        children = uids(cluster)
        cluster.start()
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.until(lambda: labelled(cluster) == 8)
        await cluster.settled()
        assert uids(cluster) == children
        assert cluster.status()["replicaStatuses"] == RUN["replicaStatuses"]


async def test_job_that_our_rules_reject_runs_until_its_end(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        await lift_rules(cluster, KIND)
        await left_behind(cluster, tf_job(), CREATED, RUNNING, **RUN)
        boss = {"replicas": 1, "template": template("tensorflow")}
        strange = {"tfReplicaSpecs": {"Boss": boss}, "runPolicy": {"cleanPodPolicy": "Never"}}
        await cluster.user.patch(KIND.resource, cluster.key(), {"spec": strange})
        children = uids(cluster)
        cluster.start()
        await cluster.until(lambda: "Boss" in cluster.condition("Waiting"))
        await cluster.settled()
        assert uids(cluster) == children
        assert cluster.phase() == "Running"
        assert not cluster.condition("Failed")

        chief = next(p for p in cluster.objects(PODS) if "chief" in p["metadata"]["name"])
        await cluster.node.finish(chief["metadata"]["uid"])
        assert (await cluster.ended())["conditions"][-1]["type"] == "Succeeded"
