"""training-operator's events of a job, each once."""

from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import EVENTS, PODS
from dlctl.options import Options
from tests.builders import training_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Exit, Outcome

_OPTIONS: Final = Options(restart_backoff_s=0.5, restart_backoff_cap_s=1.0, per_child_events=True)


def event_messages(cluster: ClusterHarness) -> list[tuple[str, str, str]]:
    """Return the events of the job, sorted by message."""
    events = [e for e in cluster.objects(EVENTS) if e["involvedObject"]["kind"] == "TFJob"]
    assert {event["source"]["component"] for event in events} == {"tfjob-controller"}
    return sorted((event["type"], event["reason"], event["message"]) for event in events)


def tf_job(template_policy: str = "", **run_policy: Any) -> JSON:
    job = training_job("TFJob", Chief=1, Worker=1)
    for spec in job["spec"]["tfReplicaSpecs"].values():
        spec["restartPolicy"] = "ExitCode"
        if template_policy:
            spec["template"]["spec"]["restartPolicy"] = template_policy
    job["spec"]["runPolicy"] = run_policy
    return job


async def test_events_of_a_job_are_those_of_training_operator(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(options=_OPTIONS) as cluster:
        cluster.start()
        outcomes: dict[str, list[Outcome]] = {
            "worker-0": [Exit(143), KEEPS_RUNNING],
            "chief-0": [DONE],
        }
        manifest = tf_job("Always", cleanPodPolicy="All")
        await cluster.submit(manifest, outcomes, last_replica="chief-0")
        await cluster.ended()
        await cluster.settled()
        where = cluster.namespace
        overwritten = (
            "Restart policy in pod template will be overwritten by restart policy in replica spec"
        )
        assert event_messages(cluster) == [
            ("Normal", "ExitedWithCode", f"Pod: {where}.linear-chief-0 exited with code 0"),
            ("Normal", "ExitedWithCode", f"Pod: {where}.linear-worker-0 exited with code 143"),
            ("Normal", "SuccessfulCreatePod", "Created pod: linear-chief-0"),
            ("Normal", "SuccessfulCreatePod", "Created pod: linear-worker-0"),
            ("Normal", "SuccessfulCreateService", "Created service: linear-chief-0"),
            ("Normal", "SuccessfulCreateService", "Created service: linear-worker-0"),
            ("Normal", "SuccessfulDeletePod", "Deleted pod: linear-chief-0"),
            ("Normal", "SuccessfulDeletePod", "Deleted pod: linear-worker-0"),
            ("Normal", "SuccessfulDeleteService", "Deleted service: linear-chief-0"),
            ("Normal", "SuccessfulDeleteService", "Deleted service: linear-worker-0"),
            ("Normal", "TFJobSucceeded", f"TFJob {where}/linear successfully completed."),
            (
                "Warning",
                "Error",
                "Error pod linear-worker-0 container tensorflow exitCode: 143 terminated message: ",
            ),
            ("Warning", "SetPodTemplateRestartPolicy", overwritten),
            (
                "Warning",
                "TFJobRestarting",
                "job linear is restarting because Worker replica(s) failed.",
            ),
        ]


async def test_child_that_cannot_be_created_is_reported_once(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        pod = {
            "metadata": {"name": "linear-worker-0"},
            "spec": {"containers": [{"name": "other", "image": "x"}]},
        }
        await cluster.user.create(PODS, cluster.namespace, pod)
        cluster.start()
        await cluster.submit(tf_job(), {"chief-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: "FailedCreatePod" in cluster.events())
        await cluster.advance(120)
        (event,) = [e for e in cluster.objects(EVENTS) if e["reason"] == "FailedCreatePod"]
        expected = 'Error creating: pods "linear-worker-0" already exists'
        assert (event["type"], event["message"], event["count"]) == ("Warning", expected, 1)
