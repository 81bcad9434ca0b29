"""Whoever may write a job's status cannot make the controller act without end."""

from dlctl.api.json_types import JSON
from tests.builders import kind_of, training_job
from tests.support.harness import StartCluster
from tests.support.outcomes import Exit

KIND = kind_of("kubeflow.org/v1", "TFJob")


def restarts(status: JSON) -> JSON:
    return dict((status.get("dlctl") or {}).get("restarts") or {})


async def test_negative_count_of_restarts_does_not_end_the_back_off(
    start_cluster: StartCluster,
) -> None:
    job = training_job("TFJob", Worker=1)
    job["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await cluster.submit(job, {"worker-0": [Exit(137)] * 10_000})
        await cluster.until(lambda: restarts(cluster.status()))
        edited = {"dlctl": {"restarts": {"worker-0": {"consecutiveEnds": -(2**31)}}}}
        await cluster.user.patch(
            KIND.resource, cluster.key(), {"status": edited}, subresource="status"
        )
        await cluster.advance(100)
        # The first one, and those of the back-off after 10 s, 20 s, 40 s.
        assert cluster.history.created.total() <= 6
