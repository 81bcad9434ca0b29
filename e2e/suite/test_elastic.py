"""Elastic Horovod trains in real containers while workers are added, removed and killed.

``E2E_FRAMEWORKS`` is the prefix that replaces that of the manifest's image.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from e2e import install
from e2e.kubectl import Kubectl
from e2e.suite import elastic
from e2e.suite.elastic import JOBS, LAUNCHER, NAME, SCALERS
from e2e.testbed import ClusterTestbed
from e2e.watching import watching

_PREFIX: Final = os.environ.get("E2E_FRAMEWORKS", "")
_SETTINGS: Final = {"DLCTL_ELASTIC_INIT_CONTAINER_IMAGE": f"{_PREFIX}/horovod:0.28.1"}
# Each worker loads TensorFlow at its start, and all share two cores.
_START_S: Final = 180
_RESCALE_S: Final = 120
_END_S: Final = 240
# After the launcher has disconnected, on a busy machine.
_TOLD_S: Final = 3.0

Measured = Callable[[str, object], None]

pytestmark = [
    pytest.mark.skipif(not _PREFIX, reason="E2E_FRAMEWORKS is empty: `make e2e-elastic` has it"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module", autouse=True)
def _images(controller: Kubectl) -> Iterator[None]:
    """Configure the controller with available images."""
    with install.with_settings(controller, _SETTINGS):
        yield


def worker(*indexes: int) -> list[str]:
    return [f"{NAME}-worker-{index}" for index in indexes]


def test_training_continues_from_two_workers_to_four_to_one(
    kubectl: Kubectl, record_property: Measured
) -> None:
    began = time.time()
    elastic.submit(kubectl, _PREFIX, steps=900)
    elastic.until_phase(kubectl, JOBS, NAME, "Running", within_s=_START_S)
    record_property("seconds from the job to Running", round(time.time() - began, 1))
    first = elastic.until_size(kubectl, 2, within_s=_START_S)
    record_property("seconds from the job to step 10", round(first.at - began, 1))

    asked = time.time()
    elastic.scale(kubectl, "ScaleOut", "more", toAdd={"count": 2})
    elastic.until_phase(kubectl, SCALERS["ScaleOut"], "more", "ScaleSucceeded", within_s=_RESCALE_S)
    record_property("seconds from ScaleOut to ScaleSucceeded", round(time.time() - asked, 1))
    grown = elastic.until_size(kubectl, 4, within_s=_RESCALE_S)
    record_property("seconds from ScaleOut to a step of 4", round(grown.at - asked, 1))
    assert elastic.workers(kubectl) == worker(0, 1, 2, 3)

    asked = time.time()
    elastic.scale(kubectl, "ScaleIn", "less", toDelete={"count": 3})
    kubectl.until(
        lambda: elastic.workers(kubectl) == worker(0), within_s=_RESCALE_S, what="one worker"
    )
    gone = time.time()
    record_property("seconds from ScaleIn to gone", round(gone - asked, 1))
    elastic.until_phase(kubectl, SCALERS["ScaleIn"], "less", "ScaleSucceeded", within_s=_RESCALE_S)
    shrunk = elastic.until_size(kubectl, 1, within_s=_RESCALE_S)
    record_property("seconds from ScaleIn to a step of 1", round(shrunk.at - asked, 1))

    elastic.until_phase(kubectl, JOBS, NAME, "Succeeded", within_s=_END_S)
    ended = time.time()
    said = elastic.log(kubectl)
    numbers = [step.number for step in elastic.steps(said)]
    assert numbers == sorted(set(numbers)), "a step was taken twice"
    assert numbers[-1] == 900
    assert " sizes 2 4 1\n" in said
    record_property(
        "seconds from the last step to Succeeded", round(ended - elastic.steps(said)[-1].at, 1)
    )


def test_workers_are_deleted_soon_after_the_launcher_disconnects(
    kubectl: Kubectl, record_property: Measured
) -> None:
    elastic.submit(kubectl, _PREFIX, steps=100_000)
    elastic.until_size(kubectl, 2, within_s=_START_S)
    with watching(kubectl, "pods", "--selector", elastic.WORKERS) as record:
        elastic.scale(kubectl, "ScaleIn", "one", toDelete={"podNames": worker(0)})
        disconnected = kubectl.until(
            lambda: time.time() if _has_disconnected(kubectl, worker(0)[0]) else None,
            within_s=_RESCALE_S,
            what="a launcher without a connection to the worker",
        )
        kubectl.until(
            lambda: any("deletionTimestamp" in c.object["metadata"] for c in record.changes()),
            within_s=_RESCALE_S,
            what="the deletion of the pod",
        )
        told = time.time()
        kubectl.until(
            lambda: any(change.deleted for change in record.changes()),
            within_s=_RESCALE_S,
            what="the end of the pod",
        )
        gone = time.time()
    record_property("seconds from disconnect to deleted", round(max(0.0, told - disconnected), 1))
    record_property("seconds from disconnect to gone", round(max(0.0, gone - disconnected), 1))
    # How long pods take to terminate depends on the node.
    assert told - disconnected < _TOLD_S
    assert elastic.workers(kubectl) == worker(1)
    elastic.until_size(kubectl, 1, within_s=_RESCALE_S)


def test_killed_worker_is_replaced_and_training_continues(
    kubectl: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    elastic.submit(kubectl, _PREFIX, steps=100_000, restartPolicy="Always")
    elastic.until_size(kubectl, 2, within_s=_START_S)
    (killed,) = (pod for pod in kubectl.items("pods") if pod["metadata"]["name"] == worker(1)[0])
    began = time.time()
    testbed.kill_pod(killed["metadata"]["uid"])
    # Horovod blacklists the names of failed hosts.
    kubectl.until(
        lambda: worker(2)[0] in elastic.workers(kubectl), within_s=_START_S, what="a replacement"
    )
    record_property("seconds from SIGKILL to the replacement", round(time.time() - began, 1))
    again = elastic.until_size(kubectl, 2, within_s=_START_S, after=time.time())
    record_property("seconds from SIGKILL to a step of 2", round(again.at - began, 1))
    assert elastic.phase(kubectl, JOBS, NAME) == "Running"
    numbers = [step.number for step in elastic.steps(elastic.log(kubectl))]
    assert numbers == sorted(numbers), "training started over"


def test_documented_scaling_session_prints_the_documented_output(kubectl: Kubectl) -> None:
    elastic.submit(kubectl, _PREFIX, steps=100_000)
    elastic.until_size(kubectl, 2, within_s=_START_S)
    assert _table(kubectl, "trainingjob") == [[NAME, "Running"]]

    elastic.scale(kubectl, "ScaleIn", "scalein-sample", toDelete={"count": 1})
    elastic.until_size(kubectl, 1, within_s=_RESCALE_S)
    elastic.until_phase(
        kubectl, SCALERS["ScaleIn"], "scalein-sample", "ScaleSucceeded", within_s=_RESCALE_S
    )
    assert _table(kubectl, "scalein") == [["scalein-sample", "ScaleSucceeded"]]
    assert elastic.workers(kubectl) == worker(0)

    elastic.scale(kubectl, "ScaleOut", "scaleout-sample", toAdd={"count": 2})
    elastic.until_phase(
        kubectl, SCALERS["ScaleOut"], "scaleout-sample", "ScaleSucceeded", within_s=_RESCALE_S
    )
    assert _table(kubectl, "scaleout") == [["scaleout-sample", "ScaleSucceeded"]]
    assert elastic.workers(kubectl) == worker(0, 1, 2)
    elastic.until_size(kubectl, 3, within_s=_RESCALE_S)
    assert _table(kubectl, "trainingjob") == [[NAME, "Running"]]


def _table(kubectl: Kubectl, kind: str) -> list[list[str]]:
    """Return what kubectl prints for a kind, without ages."""
    header, *rows = (line.split() for line in kubectl("get", kind).splitlines())
    assert header == ["NAME", "PHASE", "AGE"]
    return [row[:-1] for row in rows]


def _has_disconnected(kubectl: Kubectl, host: str) -> bool:
    """Return whether no program in the launcher mentions this host."""
    look = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
    return host not in kubectl("exec", LAUNCHER, "--", "sh", "-c", look)


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
def test_elastic_pods_are_cleaned_up_by_the_policy(kubectl: Kubectl, policy: str) -> None:
    elastic.submit(kubectl, _PREFIX, steps=20, clean_pods=policy)
    elastic.until_phase(kubectl, JOBS, NAME, "Succeeded", within_s=_START_S + _END_S)
    # Workers only sleep, so none has ended; the launcher is always kept for its logs.
    expected = sorted([LAUNCHER, *(worker(0, 1) if policy == "None" else [])])

    def probe() -> bool:
        return sorted(pod["metadata"]["name"] for pod in kubectl.items("pods")) == expected

    kubectl.until(probe, within_s=60, what=f"{expected} to be left")
    assert kubectl("logs", LAUNCHER)
