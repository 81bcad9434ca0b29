"""Outputs as programs and launchers write them when they fail."""

from collections.abc import Sequence

RULE = "=" * 60
THIN_RULE = "-" * 60
NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
TORCHRUN_TRACEBACK = """\
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/usr/lib/python3/dist-packages/torch/distributed/run.py", line 762, in main
    run(args)
  File "/usr/lib/python3/dist-packages/torch/distributed/launcher/api.py", line 246, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""
# The kubelet keeps this many bytes of a log as the termination message.
KEPT_BYTES = 2048


def raised(exception: str, *, tag: str = "") -> str:
    """Return a traceback that ends in an exception."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 41, in <module>',
        "    main()",
        '  File "/app/train.py", line 17, in main',
        "    step(batch)",
        *exception.split("\n"),
    ]
    return "".join(f"{tag}{line}\n" for line in lines)


def failure(index: int, rank: int, code: int, traceback: str = "") -> str:
    """Return one failure in torchrun's summary."""
    if traceback:
        first, *others = raised(traceback).splitlines()
        shown = "\n".join([first, *(f"  {line}" for line in others), "  "])
    elif code < 0:
        shown = f"Signal {-code} (SIG) received by PID 97"
    else:
        shown = NO_TRACEBACK
    return f"""\
[{index}]:
  time      : 2026-11-23_10:49:29
  host      : linear-worker-1
  rank      : {rank} (local_rank: {rank % 8})
  exitcode  : {code} (pid: 97)
  error_file: <N/A>
  traceback : {shown}
"""


def torchrun(
    rank: int,
    code: int,
    *,
    traceback: str = "",
    others: Sequence[tuple[int, int]] = (),
    before: str = "",
) -> str:
    """Return the output of torchrun after one of its processes has failed first."""
    listed = "".join(failure(n, *other) for n, other in enumerate(others, 1))
    return (
        f"{before}{TORCHRUN_TRACEBACK}{RULE}\ntrain.py FAILED\n{THIN_RULE}\nFailures:\n"
        f"{listed or '  <NO_OTHER_FAILURES>' + chr(10)}{THIN_RULE}\n"
        f"Root Cause (first observed failure):\n{failure(0, rank, code, traceback)}{RULE}\n"
    )


def open_mpi_signal(rank: int, host: str, signal: str = "9 (Killed)", by: str = "mpirun") -> str:
    """Return Open MPI's report of a process that a signal ended."""
    return f"""\
{"-" * 74}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{"-" * 74}
{"-" * 74}
{by} noticed that process rank {rank} with PID 0 on node {host} exited on signal {signal}.
{"-" * 74}
"""


def prrte_signal(rank: int, host: str, signal: str = "9 (Killed)") -> str:
    """Return the report of Open MPI 5 of a process that a signal ended."""
    return f"""\
{"-" * 74}
prterun noticed that process rank {rank} with PID 3063175 on node {host} exited on
signal {signal}.
{"-" * 74}
"""


def mpi_exit(name: str, code: int, by: str = "mpirun") -> str:
    """Return the report of Open MPI of a process that exited."""
    return f"""\
{"-" * 74}
{by} detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: {name}
  Exit code:    {code}
{"-" * 74}
"""


def hydra(host: str, code: int, text: str = "", *, rank: int | None = None) -> str:
    """Return Hydra's report of a process that failed."""
    by = f"RANK {rank} " if rank is not None else ""
    end = f"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {text}\n" if text else ""
    return f"""\

{"=" * 83}
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   {by}PID 20123 RUNNING AT {host}
=   EXIT CODE: {code}
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
{"=" * 83}
{end}This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""


def intel_mpi(rank: int, host: str) -> str:
    """Return Intel MPI's report of a process that was killed."""
    return f"""\
{"=" * 83}
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK {rank} PID 1234 RUNNING AT {host}
=   KILLED BY SIGNAL: 9 (Killed)
{"=" * 83}
"""


def horovodrun(name: str, code: int = 1) -> str:
    """Return horovodrun's report of a process that failed."""
    return raised(
        "RuntimeError: Horovod detected that one or more processes exited with non-zero status, "
        f"thus causing the job to be terminated. The first process to do so was:\n"
        f"Process name: {name}\nExit code: {code}\n"
    )


LOST_DAEMON = """\
--------------------------------------------------------------------------
ORTE has lost communication with a remote daemon.

  HNP daemon   : [[12234,0],0] on node linear-launcher
  Remote daemon: [[12234,0],2] on node linear-worker-1

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself. We cannot recover from this failure, and
therefore will terminate the job.
--------------------------------------------------------------------------
"""
UNRELIABLE_DAEMON = """\
rank on linear-worker-0
Connection to linear-worker-1.linear.ml.svc closed by remote host.
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
"""
GLOO_CLOSED = raised(
    "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.7]:6035"
)
NCCL_REMOTE = raised(
    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils."
    "hpp:219, remote process exited or there was a network error, NCCL version 2.20.5\n"
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting"
    " prematurely.\nLast error:\nsocketProgress: Connection closed by remote peer"
    " linear-worker-1.ml.svc<38298>"
)
NCCL_SYSTEM = raised(
    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/Process"
    "GroupNCCL.cpp:1970, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL"
    " version 2.20.5\nncclSystemError: System call (e.g. socket, malloc) or external library call"
    " failed or device error.\nLast error:\nCall to recv failed : Connection reset by peer"
)
WATCHDOG = (
    "[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST,"
    " Timeout(ms)=600000) ran for 600081 milliseconds before timing out.\n"
)
TCP_STORE = (
    "[W1123 10:49:29.1 TCPStore.cpp:138] [c10d] recvValue failed on SocketImpl(fd=62,"
    " addr=[linear-worker-0]:58, remote=[linear-worker-1]:29500): Connection was likely closed.\n"
)
JAX_PEER = (
    "E0926 17:26:32.075402 157988 coordination_service_agent.cc:332] Polled an error from"
    " coordination service (this can be an error from this or another task).\n"
    "F0926 17:26:32.075587 157988 client.h:77] Terminating process because the JAX distributed"
    " service detected fatal errors. This most likely indicates that another task died; see the"
    " other task logs for more details.\n"
)
HOROVOD_PEER = raised(
    "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused"
    " by an exception on one of the ranks or an attempt to allreduce after one has finished."
)
SIGNALLED = raised(
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 1 got signal: 15"
)
CUDA_OOM = raised(
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 79.15 GiB of which 1.2 GiB is free."
)
DEVICE_ASSERT = raised(
    "RuntimeError: CUDA error: device-side assert triggered\n"
    "CUDA kernel errors might be asynchronously reported at some other API call.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
)
ILLEGAL_ACCESS = raised(
    "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)
ECC = raised("RuntimeError: CUDA error: uncorrectable ECC error encountered")
