"""From the start of the process to its first write as the leader, with one job waiting."""

import datetime
import time
from typing import ClassVar

import attrs

from bench.cluster.audit import is_write
from bench.cluster.manifests import PYTORCH_JOBS, pytorch_job
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import Bench, Figures
from bench.cluster.seen import Seen


@attrs.frozen
class FirstWrite:
    """A cluster with nothing but one job."""

    peer: ClassVar[str] = ""

    async def measure(self, bench: Bench, program: Program) -> Figures:
        async with namespace(bench.server) as name:
            await bench.server.post(PYTORCH_JOBS.format(name), pytorch_job("waiting", 1))
            mark, pods = bench.audit.end(), Seen()
            flags = ("--leader-elect", f"--leader-election-namespace={name}")
            async with bench.server.watching(f"/api/v1/namespaces/{name}/pods", pods.add):
                start = time.perf_counter()
                with program.run(*flags, until_ready=False) as operator:
                    await pods.complete_s(1, start)
                    started_at = operator.started_at
            writes = [entry for entry in bench.audit.requests(mark) if is_write(entry)]
        if not writes:
            return {"first_write_s": None}
        received = min(entry["requestReceivedTimestamp"] for entry in writes)
        first = datetime.datetime.fromisoformat(received).timestamp()
        return {"first_write_s": first - started_at}
