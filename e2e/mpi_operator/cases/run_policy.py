"""The run policy: how a job ends, what stays of it, and suspension."""

from typing import Any, Final

from e2e.mpi_operator.case import Case, launcher, mpijob
from e2e.mpi_operator.cases.spec import RUN
from e2e.mpi_operator.steps import (
    edits,
    launcher_fails,
    launcher_runs,
    launcher_succeeds,
    resumes,
    suspends,
    until_ended,
    worker_ends,
    workers_run,
)

_STARTS: Final = (workers_run(), launcher_runs())
_POLICIES: Final = ("None", "Running", "All")
_ONCE: Final = {"backoffLimit": 0}


def with_policy(name: str, *steps: Any, workers: int = 2, **policy: Any) -> Case:
    return Case(mpijob(name, workers, launcher(restart="Never"), run_policy=policy), steps)


_MOVED: Final = {
    "mpiReplicaSpecs": {
        "Launcher": {
            "template": {
                "metadata": {"labels": {"new": "l"}, "annotations": {"new": "a"}},
                "spec": {
                    "nodeSelector": {"zone": "b"},
                    "tolerations": [{"key": "new", "operator": "Exists"}],
                    "priorityClassName": "",
                },
            }
        },
        "Worker": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}},
    }
}

CASES: Final = (
    *(
        with_policy(f"clean-{policy}-success".lower(), *RUN, cleanPodPolicy=policy)
        for policy in _POLICIES
    ),
    *(
        with_policy(
            f"clean-{policy}-failure".lower(),
            *_STARTS,
            worker_ends(0, "Succeeded"),
            launcher_fails(),
            until_ended(),
            cleanPodPolicy=policy,
            **_ONCE,
        )
        for policy in _POLICIES
    ),
    *(
        with_policy(
            f"suspend-{policy}".lower(),
            *_STARTS,
            worker_ends(1, "Succeeded"),
            suspends(),
            resumes(),
            *RUN,
            workers=3,
            cleanPodPolicy=policy,
        )
        for policy in _POLICIES
    ),
    with_policy("suspended-first", resumes(), *RUN, suspend=True),
    with_policy("suspended-moved", resumes(**_MOVED), *_STARTS, suspend=True),
    with_policy("suspended-later-moved", *_STARTS, suspends(), resumes(**_MOVED), *_STARTS),
    with_policy("suspended-twice", *_STARTS, suspends(), resumes(), suspends(), resumes(), *RUN),
    with_policy("suspended-after-end", *RUN, suspends()),
    with_policy("ttl", *RUN, ttlSecondsAfterFinished=3600),
    with_policy("ttl-zero", *RUN, ttlSecondsAfterFinished=0),
    with_policy(
        "ttl-edited",
        *_STARTS,
        edits("TTL", spec={"runPolicy": {"ttlSecondsAfterFinished": 3600}}),
        launcher_succeeds(),
    ),
    with_policy("deadline", *_STARTS, until_ended(), activeDeadlineSeconds=15),
    with_policy("deadline-pending", until_ended(), activeDeadlineSeconds=10),
    with_policy("deadline-suspended", suspends(), activeDeadlineSeconds=30),
    with_policy("never-runs", launcher_succeeds()),
    with_policy("fails-once", *_STARTS, launcher_fails(), until_ended(), **_ONCE),
    with_policy(
        "fails-with-reason",
        *_STARTS,
        launcher_fails("OOMKilled", "the node was low on memory", 137),
        until_ended(),
        **_ONCE,
    ),
    with_policy(
        "retried",
        *_STARTS,
        launcher_fails(),
        launcher_runs(again=True),
        launcher_succeeds(),
        backoffLimit=1,
    ),
    with_policy(
        "retries-used-up",
        *_STARTS,
        launcher_fails("Error", "first"),
        launcher_runs(again=True),
        launcher_fails("Error", "second"),
        until_ended(),
        backoffLimit=1,
    ),
    *(
        with_policy(f"managed-{number}", *RUN, managedBy=manager)
        for number, manager in enumerate(
            ("kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue", "example.com/mine")
        )
    ),
    with_policy(
        "scheduling-policy",
        *_STARTS,
        schedulingPolicy={"minAvailable": 2, "queue": "q", "priorityClass": "p"},
    ),
)
