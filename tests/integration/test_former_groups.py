"""Kinds of former groups beside those of Kubeflow's: two jobs, each with its own children."""

from dlctl.api.meta import EVENTS, PODS, SERVICES
from tests.builders import kind_of, training_job, xgboost_operators_job
from tests.support.harness import StartCluster
from tests.support.outcomes import KEEPS_RUNNING

GROUPS = ("kubeflow.org", "xgboostjob.kubeflow.org")
CHILDREN = ["{}-master-0", "{}-worker-0", "{}-worker-1"]


async def test_xgboost_jobs_of_both_groups_run_side_by_side(start_cluster: StartCluster) -> None:
    kinds = [kind_of(f"{group}/v1", "XGBoostJob") for group in GROUPS]
    async with start_cluster(kinds=kinds) as cluster:
        registry = cluster.start().manager.metrics.registry
        running = {"worker-0": [KEEPS_RUNNING], "worker-1": [KEEPS_RUNNING]}
        wires = (
            training_job("XGBoostJob", "now", Master=1, Worker=2),
            xgboost_operators_job(name="former", RunPolicy={"cleanPodPolicy": "All"}),
        )
        jobs = [await cluster.submit(wire, running) for wire in wires]
        for job in jobs:
            name = job["metadata"]["name"]
            await cluster.ended(name)
            assert cluster.condition("Succeeded", name)
            owners = {
                owner["apiVersion"]
                for child in cluster.owned(SERVICES, job) + cluster.owned(PODS, job)
                for owner in child["metadata"]["ownerReferences"]
            }
            assert owners <= {job["apiVersion"]}
        await cluster.settled()
        # The policy under its former name is stored and followed: of the other job, all stay.
        assert not cluster.owned(PODS, jobs[1])
        assert sorted(pod["metadata"]["name"] for pod in cluster.owned(PODS, jobs[0])) == [
            name.format("now") for name in CHILDREN
        ]
        regarding = {
            event["involvedObject"]["apiVersion"]
            for event in cluster.objects(EVENTS)
            if event["involvedObject"]["name"] == "former"
        }
        assert regarding == {"xgboostjob.kubeflow.org/v1"}
        succeeded = {
            sample.labels["framework"]: sample.value
            for family in registry.collect()
            for sample in family.samples
            if sample.name == "training_operator_jobs_successful_total"
        }
        assert succeeded == {"xgboost": 1}
