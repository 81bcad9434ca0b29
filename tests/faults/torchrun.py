"""Real torchrun and torch.distributed: agents that exit with 1, ranks that end differently."""

from typing import Any, Final

from dlctl.api.status.verdict import Cause
from tests.faults.fault import GANG, Blame, Fault, kubeflow_job, replicas, shell

USER: Final = Cause.USER_CODE
# The two options change nothing; PyTorch 1.13 on Python 3.11 fails on their defaults.
_TORCHRUN: Final = (
    'printf %s "$SCRIPT" >train.py; '
    "exec /usr/bin/torchrun --redirects=1:1 --tee=1:1 --monitor_interval=1 {options} train.py"
)
# What the last rank does; the others wait.
_LAST: Final = """
import os, signal, sys, time
def main():
    if int(os.environ["RANK"]) + 1 < int(os.environ["WORLD_SIZE"]):
        time.sleep(60)
    {act}
{main}
"""
_RECORD: Final = """
from torch.distributed.elastic.multiprocessing.errors import record
record(main)()
"""
# The last rank fails between two collective operations, at which the others notice.
_GLOO: Final = """
import datetime, os, sys
import torch
from torch import distributed
distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
for step in range(9):
    distributed.all_reduce(torch.ones(1))
    if step == 2 and distributed.get_rank() + 1 == distributed.get_world_size():
        raise ValueError("the loss is not finite")
"""


def _one_node(name: str, act: str, blame: Blame, says: str, *, record: bool = False) -> Fault:
    script = _LAST.format(act=act, main=_RECORD if record else "main()")
    specs = {"Master": _torchrun(1, script, "--nnodes=1 --nproc_per_node=2")}
    return Fault(name, kubeflow_job("PyTorchJob", specs), blame, says, needs=("torch",))


def _torchrun(count: int, script: str, options: str = "") -> dict[str, Any]:
    env = [{"name": "SCRIPT", "value": script.replace("$", "$$")}]
    return replicas(count, shell(_TORCHRUN.format(options=options)), container={"env": env})


_RAISE: Final = "raise ValueError('the learning rate is negative')"
FAULTS: Final = [
    _one_node(
        "torchrun-exception",
        _RAISE,
        Blame(USER, "master-0", 1, rank=1),
        "ValueError: the learning rate is negative",
    ),
    _one_node(
        "torchrun-recorded-exception",
        _RAISE,
        Blame(USER, "master-0", 1, rank=1),
        "ValueError: the learning rate is negative",
        record=True,
    ),
    _one_node("torchrun-exit-code", "sys.exit(17)", Blame(USER, "master-0", 17, rank=1), "17"),
    _one_node(
        "torchrun-killed-rank",
        "os.kill(os.getpid(), signal.SIGKILL)",
        Blame(Cause.UNKNOWN, "master-0", 137, rank=1),
        "SIGKILL",
    ),
    _one_node(
        "torchrun-segmentation-fault",
        "os.kill(os.getpid(), signal.SIGSEGV)",
        Blame(USER, "master-0", 139, rank=1),
        "SIGSEGV",
    ),
    Fault(
        "torchrun-of-two-nodes",
        kubeflow_job(
            "PyTorchJob",
            {"Master": _torchrun(1, _GLOO), "Worker": _torchrun(1, _GLOO)},
            nprocPerNode="1",
            runPolicy=GANG,
        ),
        Blame(USER, "worker-0", 1, rank=1),
        "ValueError: the loss is not finite",
        needs=("torch",),
    ),
    Fault(
        "gloo-without-torchrun",
        kubeflow_job(
            "PyTorchJob",
            {
                "Master": replicas(1, ["/usr/bin/python3", "-c", _GLOO]),
                "Worker": replicas(2, ["/usr/bin/python3", "-c", _GLOO]),
            },
            nprocPerNode="1",
            runPolicy=GANG,
        ),
        # Whether it exits with 1 or aborts in a destructor is up to the time.
        Blame(USER, "worker-1"),
        "ValueError: the loss is not finite",
        needs=("torch",),
    ),
]
