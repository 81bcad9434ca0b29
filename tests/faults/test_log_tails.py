"""An exception that a summary hides: only the log above the termination message has it."""

import asyncio
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import embedded_control_plane
from dlctl.kube.client import Client
from dlctl.manager import Manager
from dlctl.options import Options
from tests.builders import KINDS
from tests.faults.fault import kubeflow_job, replicas, shell
from tests.faults.running import LIMIT_S, WatchedJob, judged

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * LIMIT_S)]
EXCEPTION: Final = "ValueError: the loss is not finite"
# The summary of torchrun after an exception, with more ranks than fit into the kubelet's 2,048
# bytes.
_PROGRAM: Final = f"""
cat >&2 <<'END'
[rank3]: Traceback (most recent call last):
[rank3]:   File "/app/train.py", line 12, in main
[rank3]: {EXCEPTION}
END
for rank in $(seq 4 40); do
  echo "WARNING:torch.distributed.elastic.agent: closing process $((rank + 100)) via SIGTERM, and \
the others of its group" >&2
done
cat >&2 <<'END'
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 3 (pid: 17)
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-23_10:00:00
  host      : here
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 17)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
END
exit 1
"""


async def verdict(tails: int) -> JSON:
    """Return the verdict on the program by a controller that reads at most this many logs."""
    async with (
        embedded_control_plane(KINDS, ClusterOptions(), controller=False) as running,
        Client(running.cluster.config(), user_agent="dlctl") as client,
        asyncio.TaskGroup() as group,
    ):
        manager = Manager(client, KINDS, options=Options(failure_log_tails=tails))
        controller = group.create_task(manager.run(asyncio.Event()))
        job = kubeflow_job("PyTorchJob", {"Master": replicas(1, shell(_PROGRAM))})
        job["metadata"]["name"] = "hidden"
        watched = await WatchedJob.created(running, job)
        found = await watched.until(judged)
        controller.cancel()
        return found


async def test_summary_alone_names_the_rank() -> None:
    found = await verdict(0)
    assert (found["replica"], found["rank"]) == ("master-0", 3)
    assert EXCEPTION not in found["message"]


async def test_log_names_the_exception_above_the_summary() -> None:
    found = await verdict(1)
    assert (found["cause"], found["replica"], found["rank"]) == ("UserCode", "master-0", 3)
    assert EXCEPTION in found["message"]
