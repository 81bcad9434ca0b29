"""A job of real processes restarts as a whole, and its program knows which attempt it is."""

from typing import Any

import pytest

import dlctl
from tests.python_api.jobs import job

pytestmark = pytest.mark.slow
# Rank 1 fails in the first attempt, while the other waits for it.
SCRIPT = """
import os, sys, time
attempt, rank = os.environ["DLCTL_RESTART_ATTEMPT"], os.environ["RANK"]
print("rank", rank, "attempt", attempt, os.environ["PET_RDZV_ID"], flush=True)
if attempt == "0":
    sys.exit(3) if rank == "1" else time.sleep(300)
"""

# Says when it starts, and fails.
FAILS = "import sys; print('start', flush=True); sys.exit(3)"


def gang(**policy: object) -> dict[str, Any]:
    manifest = job("gang", SCRIPT)
    specs = manifest["spec"]["pytorchReplicaSpecs"]
    specs["Worker"] = {"replicas": 1, "template": specs["Master"]["template"]}
    manifest["spec"]["runPolicy"] = {"failurePolicy": policy}
    return manifest


def test_second_attempt_of_a_gang_succeeds(cluster: dlctl.BlockingCluster) -> None:
    result = cluster.run(gang(maxRestarts=1), timeout_s=60).check()
    assert "rank 0 attempt 1 gang-1\n" in result.logs["master-0"]
    assert "rank 1 attempt 1 gang-1\n" in result.logs["worker-0"]
    first, second = result.status["dlctl"]["attempts"]
    assert (first["replica"], first["exitCode"]) == ("worker-0", 3)
    assert "cause" not in second


def test_gang_without_restarts_fails_with_the_cause(cluster: dlctl.BlockingCluster) -> None:
    result = cluster.run(gang(), timeout_s=60)
    assert not result.succeeded
    failed = result.status["conditions"][-1]
    assert (failed["type"], failed["reason"]) == ("Failed", "ReachedMaxRestarts")
    assert "worker-0" in failed["message"]


def test_program_that_may_not_be_restarted_starts_once(cluster: dlctl.BlockingCluster) -> None:
    manifest = job("once", FAILS)
    manifest["spec"]["pytorchReplicaSpecs"]["Master"]["restartPolicy"] = "OnFailure"
    result = cluster.run(manifest, max_restarts=0, timeout_s=60)
    assert "was not restarted; exit code 3" in result.message
    assert result.logs["master-0"] == "start\n"
