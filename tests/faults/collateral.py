"""One replica has a cause; the others log what libraries say when a peer is gone, some before."""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.status.verdict import Cause
from tests.faults.fault import GANG, Blame, Fault, ddp, python

USER: Final = Cause.USER_CODE
NCCL: Final = (
    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
    "ProcessGroupNCCL.cpp:1275, remote process exited or there was a network error, NCCL version"
    " 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote process"
    " exiting prematurely.\nLast error:\nsocketProgress: Connection closed by remote peer"
)
WATCHDOG: Final = (
    "[rank0]:[E1123 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600013"
    " milliseconds before timing out."
)
TCP_STORE: Final = (
    "torch.distributed.DistNetworkError: failed to recv, got 0 bytes\nException raised from"
    " recvBytes at ../torch/csrc/distributed/c10d/Utils.hpp:670\nRuntimeError: [1] is setting up"
    " NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0',"
    " but store->get('0') got error: Connection reset by peer. TCPStore recvValue failed"
)
GLOO: Final = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer"
    " [10.244.0.12]:41231"
)
JAX: Final = (
    "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Terminating process because the JAX"
    " distributed service detected fatal errors. This most likely indicates that another task died"
)
RENDEZVOUS: Final = "torch.distributed.elastic.rendezvous.api.RendezvousClosedError"
ECC: Final = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
SHAPES: Final = "RuntimeError: shape '[3, 4]' is invalid for input of size 10"
ASSERT: Final = "RuntimeError: CUDA error: device-side assert triggered"
# All begin at the same time, when the first rank has heard of all others.
_END: Final = """
import os, socket, sys, time

def connected():
    for _ in range(400):
        try:
            return socket.create_connection(address)
        except OSError:
            time.sleep(0.05)

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(("", address[1])) as listener:
        for peer in [listener.accept()[0] for _ in range(size - 1)]:
            peer.close()
else:
    connected().recv(1)
delay_s, text, code = {ends}[rank == size - 1]
time.sleep(delay_s)
print(text, file=sys.stderr, flush=True)
os._exit(code)
"""


def _fault(
    name: str,
    cause: tuple[Cause, str, int],
    others: tuple[str, int],
    *,
    ends_last: bool = False,
    apart_s: float = 0.3,
    policy: JSON = GANG,
) -> Fault:
    """Return a fault of three ranks, of which the last has the cause."""
    class_, text, code = cause
    ends = [(0.0 if ends_last else apart_s, *others), (apart_s if ends_last else 0.0, text, code)]
    # A message is one line.
    says = text.splitlines()[-1] if text else ""
    command = python(_END.replace("{ends}", repr(ends)))
    return Fault(name, ddp(command, 2, runPolicy=policy), Blame(class_, "worker-1", code), says)


FAULTS: Final = [
    _fault("nccl-peers", (USER, SHAPES, 1), (NCCL, 1)),
    _fault("nccl-peers-of-an-assert", (USER, ASSERT, 134), (WATCHDOG, 134)),
    _fault("tcp-store-of-a-dead-rank", (USER, "", 139), (TCP_STORE, 1)),
    _fault("jax-peers", (USER, SHAPES, 1), (JAX, 1)),
    # The ranks that only lost their peer end before it, or are reported before it.
    _fault("nccl-peers-first", (USER, SHAPES, 1), (NCCL, 1), ends_last=True),
    _fault("nccl-peers-of-bad-memory-first", (Cause.HARDWARE, ECC, 1), (NCCL, 1), ends_last=True),
    _fault("watchdog-first", (USER, SHAPES, 1), (WATCHDOG, 134), ends_last=True),
    _fault("gloo-peers-first", (USER, SHAPES, 1), (GLOO, 1), ends_last=True),
    _fault("rendezvous-closed-first", (USER, SHAPES, 3), (RENDEZVOUS, 1), ends_last=True),
    _fault("stopped-peers-first", (USER, SHAPES, 1), ("stopping", 143), ends_last=True),
]
# Judged when the first replica fails, which fails the job.
WITHOUT_POLICY: Final = [
    _fault(
        "nccl-peers-first-without-policy",
        (USER, SHAPES, 1),
        (NCCL, 1),
        ends_last=True,
        apart_s=1.0,
        policy={},
    )
]
