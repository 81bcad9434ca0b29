"""Why one replica ended, by everything that may tell."""

from typing import Any

import pytest

from dlctl.api.status.verdict import Cause, Confidence
from dlctl.reconcilers.nodes.node_states import NodeState
from tests.reconcilers.failures.gangs import (
    JAX_JOB,
    MPI_JOB,
    TORCH_JOB,
    disrupted,
    down_node,
    ended,
    failed_replica,
    unhealthy_node,
    verdict_of,
)
from tests.reconcilers.program_output import outputs
from tests.reconcilers.program_output.outputs import KEPT_BYTES, raised, torchrun

_OWN_DISK = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."
_NODE_DISK = "The node was low on resource: ephemeral-storage."
_WORK = "".join(f"step {number}: loss 0.1\n" for number in range(5))


@pytest.mark.parametrize(
    ("status", "cause", "text"),
    [
        pytest.param({"reason": "Evicted", "message": _NODE_DISK}, Cause.EVICTION, _NODE_DISK,
                     id="evicted: the node is full"),
        pytest.param({"reason": "Evicted", "message": _OWN_DISK}, Cause.CONFIGURATION, _OWN_DISK,
                     id="evicted: its own limit"),
        pytest.param({"reason": "Preempting"}, Cause.PREEMPTION, "critical pod",
                     id="preempted by the kubelet"),
        pytest.param(disrupted("PreemptionByScheduler"), Cause.PREEMPTION, "higher priority",
                     id="preempted by the scheduler"),
        pytest.param(disrupted("PreemptionByKubeScheduler"), Cause.PREEMPTION, "higher priority",
                     id="preempted, as 1.25 calls it"),
        pytest.param(disrupted("EvictionByEvictionAPI"), Cause.EVICTION, "drain", id="drained"),
        pytest.param(disrupted("DeletionByTaintManager"), Cause.NODE, "taint", id="tainted node"),
        pytest.param(disrupted("DeletionByPodGC"), Cause.NODE, "gone", id="node gone"),
        pytest.param({**disrupted("TerminationByKubelet"), "reason": "Terminated"}, Cause.NODE,
                     "shut down", id="node shut down gracefully"),
        pytest.param({"reason": "NodeShutdown"}, Cause.NODE, "shut", id="refused at shutdown"),
        pytest.param({"reason": "NodeLost"}, Cause.NODE, "responding", id="node lost"),
        pytest.param({"reason": "OutOfnvidia.com/gpu"}, Cause.PLATFORM, "nvidia.com/gpu",
                     id="no GPU left"),
        pytest.param({"reason": "OutOfcpu"}, Cause.PLATFORM, "cpu", id="no CPU left"),
        pytest.param({"reason": "UnexpectedAdmissionError", "message": "device plugin"},
                     Cause.PLATFORM, "device plugin", id="device plugin fails"),
        pytest.param({"reason": "NodeAffinity"}, Cause.PLATFORM, "labels", id="node affinity"),
        pytest.param({"reason": "TopologyAffinityError"}, Cause.PLATFORM, "align", id="topology"),
        pytest.param({"reason": "SMTAlignmentError"}, Cause.PLATFORM, "cores", id="whole cores"),
        pytest.param({"reason": "PodOSNotSupported"}, Cause.PLATFORM, "operating", id="other OS"),
        pytest.param({"reason": "TaintToleration"}, Cause.PLATFORM, "rejected", id="rejected"),
        pytest.param({"reason": "SysctlForbidden"}, Cause.CONFIGURATION, "allow", id="sysctl"),
        pytest.param({"reason": "DeadlineExceeded"}, Cause.DEADLINE, "activeDeadlineSeconds",
                     id="the pod's deadline"),
    ],
)  # fmt: skip
def test_reason_of_the_pod_is_the_cause(status: dict[str, Any], cause: Cause, text: str) -> None:
    found = verdict_of(failed_replica("worker-1", ended(143), **status))
    assert (found.cause, found.confidence, found.replica) == (cause, Confidence.HIGH, "worker-1")
    assert text in found.message


@pytest.mark.parametrize(
    ("code", "reason", "cause"),
    [
        pytest.param(137, "OOMKilled", Cause.OUT_OF_MEMORY, id="memory limit"),
        pytest.param(1, "OOMKilled", Cause.OUT_OF_MEMORY, id="memory limit reached by a child"),
        pytest.param(137, "ContainerStatusUnknown", Cause.NODE, id="end not observed"),
        pytest.param(128, "StartError", Cause.BAD_COMMAND_OR_IMAGE, id="not started"),
        pytest.param(127, "ContainerCannotRun", Cause.BAD_COMMAND_OR_IMAGE, id="cannot run"),
    ],
)
def test_reason_of_the_container_is_the_cause(code: int, reason: str, cause: Cause) -> None:
    found = verdict_of(failed_replica("worker-1", ended(code, reason=reason)))
    assert (found.cause, found.confidence) == (cause, Confidence.HIGH)


def test_message_of_the_runtime_says_what_could_not_start() -> None:
    message = 'exec: "tarin": executable file not found in $PATH: unknown'
    found = verdict_of(failed_replica("worker-1", ended(128, message, reason="StartError")))
    assert found.message == f"its container could not start: {message}"


def test_exit_code_of_an_unobserved_end_is_not_given() -> None:
    state = ended(137, reason="ContainerStatusUnknown")
    assert verdict_of(failed_replica("worker-1", state)).exit_code is None


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("ImagePullBackOff", Cause.BAD_COMMAND_OR_IMAGE),
        ("ErrImageNeverPull", Cause.BAD_COMMAND_OR_IMAGE),
        ("InvalidImageName", Cause.BAD_COMMAND_OR_IMAGE),
        ("CreateContainerConfigError", Cause.CONFIGURATION),
        ("CreateContainerError", Cause.CONFIGURATION),
        ("RunContainerError", Cause.BAD_COMMAND_OR_IMAGE),
    ],
)
def test_pod_that_never_started_shows_why(reason: str, cause: Cause) -> None:
    waiting = {"waiting": {"reason": reason, "message": 'secret "key" not found'}}
    found = verdict_of(failed_replica("worker-1", waiting, phase="Pending"))
    assert found.cause is cause
    assert 'secret "key" not found' in found.message


@pytest.mark.parametrize(
    ("code", "cause", "text"),
    [
        (1, Cause.USER_CODE, "exit code 1"),
        (42, Cause.USER_CODE, "exit code 42"),
        (93, Cause.USER_CODE, "not to be restarted"),
        (126, Cause.BAD_COMMAND_OR_IMAGE, "cannot be executed"),
        (127, Cause.BAD_COMMAND_OR_IMAGE, "not found"),
        (132, Cause.USER_CODE, "SIGILL"),
        (134, Cause.USER_CODE, "SIGABRT"),
        (135, Cause.USER_CODE, "SIGBUS"),
        (137, Cause.UNKNOWN, "SIGKILL"),
        (139, Cause.USER_CODE, "SIGSEGV"),
        (129, Cause.UNKNOWN, "SIGHUP"),
        (130, Cause.UNKNOWN, "SIGINT"),
        (143, Cause.UNKNOWN, "SIGTERM"),
    ],
)
def test_exit_code_alone_is_a_weak_proof(code: int, cause: Cause, text: str) -> None:
    found = verdict_of(failed_replica("worker-1", ended(code)))
    assert (found.cause, found.confidence, found.exit_code) == (cause, Confidence.LOW, code)
    assert text in found.message


@pytest.mark.parametrize(
    ("code", "output", "cause", "text"),
    [
        pytest.param(1, raised("ValueError: loss is nan"), Cause.USER_CODE,
                     "ValueError: loss is nan", id="exception"),
        pytest.param(1, raised("AssertionError"), Cause.USER_CODE, "AssertionError",
                     id="exception without text"),
        pytest.param(1, raised("omegaconf.errors.ConfigKeyError: Key 'lr'"), Cause.USER_CODE,
                     "Key 'lr'", id="dotted type"),
        pytest.param(1, raised("app.Diverged: at step 3"), Cause.USER_CODE, "app.Diverged",
                     id="type by another name"),
        pytest.param(1, "KeyError: 'weights'\n", Cause.USER_CODE, "KeyError: 'weights'",
                     id="last line of a traceback that is cut off"),
        pytest.param(1, "  main()\n    ^^^^\nSyntaxError: invalid syntax\n", Cause.USER_CODE,
                     "SyntaxError", id="syntax error"),
        pytest.param(1, raised("ModuleNotFoundError: No module named 'apex'"),
                     Cause.BAD_COMMAND_OR_IMAGE, "apex", id="missing module"),
        pytest.param(1, raised("ImportError: libcudart.so.12: cannot open shared object file"),
                     Cause.BAD_COMMAND_OR_IMAGE, "libcudart", id="missing library"),
        pytest.param(1, "/usr/bin/python: No module named tarin\n", Cause.BAD_COMMAND_OR_IMAGE,
                     "tarin", id="python -m"),
        pytest.param(2, "python: can't open file '/app/tarin.py': [Errno 2] No such file\n",
                     Cause.BAD_COMMAND_OR_IMAGE, "tarin.py", id="missing script"),
        pytest.param(2, "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --ecpohs\n",
                     Cause.BAD_COMMAND_OR_IMAGE, "--ecpohs", id="wrong arguments"),
        pytest.param(127, "/bin/sh: 1: tarin: not found\n", Cause.BAD_COMMAND_OR_IMAGE, "tarin",
                     id="command not found"),
        pytest.param(126, "bash: ./train.sh: Permission denied\n", Cause.BAD_COMMAND_OR_IMAGE,
                     "Permission denied", id="not executable"),
        pytest.param(1, "exec /app/run: exec format error\n", Cause.BAD_COMMAND_OR_IMAGE,
                     "exec format error", id="other architecture"),
        pytest.param(1, raised("MemoryError"), Cause.OUT_OF_MEMORY, "MemoryError",
                     id="MemoryError"),
        pytest.param(1, outputs.CUDA_OOM, Cause.OUT_OF_MEMORY, "Tried to allocate", id="CUDA OOM"),
        pytest.param(134, "terminate called after throwing an instance of 'std::bad_alloc'\n",
                     Cause.OUT_OF_MEMORY, "bad_alloc", id="C++ out of memory"),
        pytest.param(1, raised("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of"
                               " memory while trying to allocate 17179869184 bytes."),
                     Cause.OUT_OF_MEMORY, "RESOURCE_EXHAUSTED", id="JAX out of memory"),
        pytest.param(1, raised("OSError: [Errno 28] No space left on device: '/ckpt/step-3'"),
                     Cause.CONFIGURATION, "No space left", id="full disk"),
        pytest.param(135, "ERROR: Unexpected bus error encountered in worker. This might be caused"
                          " by insufficient shared memory (shm).\n", Cause.CONFIGURATION,
                     "shared memory", id="small /dev/shm"),
        pytest.param(1, raised("RuntimeError: No CUDA GPUs are available"), Cause.CONFIGURATION,
                     "No CUDA GPUs", id="no GPU asked for"),
        pytest.param(1, outputs.ECC, Cause.HARDWARE, "uncorrectable ECC", id="ECC error"),
        pytest.param(1, "preflight: no uncorrectable ECC errors\n" + raised("ValueError: nan"),
                     Cause.USER_CODE, "ValueError: nan", id="no ECC error"),
        pytest.param(1, "GPU 0: uncorrectable ECC errors: 0\n" + raised("ValueError: nan"),
                     Cause.USER_CODE, "ValueError: nan", id="ECC errors counted as 0"),
        pytest.param(1, "GPU 0 uncorrectable ECC error\n" + raised("ValueError: nan"),
                     Cause.HARDWARE, "GPU 0", id="ECC error of GPU 0"),
        pytest.param(1, outputs.DEVICE_ASSERT, Cause.USER_CODE, "device-side assert",
                     id="device-side assert"),
        pytest.param(1, outputs.ILLEGAL_ACCESS, Cause.USER_CODE, "illegal memory access",
                     id="illegal memory access"),
        pytest.param(134, outputs.WATCHDOG, Cause.HANG, "Watchdog", id="NCCL's watchdog"),
        pytest.param(134, "terminate called after throwing an instance of 'c10::Error'\n  what():"
                     "  ProcessGroupNCCL's watchdog got stuck for 480 seconds\n", Cause.HANG,
                     "got stuck", id="stuck watchdog of NCCL"),
        pytest.param(1, raised("RuntimeError: Socket Timeout"), Cause.HANG, "Socket Timeout",
                     id="rendezvous of PyTorch"),
        pytest.param(1, raised("XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out."),
                     Cause.HANG, "Barrier timed out", id="barrier of JAX"),
    ],
)  # fmt: skip
def test_output_shows_the_cause(code: int, output: str, cause: Cause, text: str) -> None:
    for message, log in ((output[-KEPT_BYTES:], ""), ("", output)):
        found = verdict_of(failed_replica("worker-1", ended(code, message), log=log))
        assert (found.cause, found.exit_code) == (cause, code)
        assert text in found.message
        assert "CUDA_LAUNCH_BLOCKING" not in found.message


def test_last_lines_stand_beside_an_exit_code() -> None:
    output = "epoch 3\n\x1b[31mloss 0.2\x1b[0m\n\x07cannot read shard 17\n\n"
    found = verdict_of(failed_replica("worker-1", ended(9, output)))
    expected = "exit code 9: a program-defined error\nepoch 3\nloss 0.2\ncannot read shard 17"
    assert found.message == expected


def test_stopped_program_is_not_blamed_for_what_it_logged_before() -> None:
    found = verdict_of(failed_replica("worker-1", ended(143, raised("ValueError: retried later"))))
    assert "SIGTERM" in found.message


@pytest.mark.parametrize(
    ("node", "cause"),
    [
        (unhealthy_node("KernelDeadlock: task blocked"), Cause.NODE),
        (unhealthy_node("AcceleratedHardwareReady=False: NvidiaXID79Error"), Cause.HARDWARE),
        (unhealthy_node("GpuMemWatch: DBE"), Cause.HARDWARE),
        (down_node("aws-node-termination-handler/spot-itn"), Cause.PREEMPTION),
        (down_node("ToBeDeletedByClusterAutoscaler"), Cause.SCALE_DOWN),
    ],
)
def test_fault_of_the_node_is_the_cause(node: NodeState, cause: Cause) -> None:
    state = ended(1, raised("ValueError: x"))
    found = verdict_of(failed_replica("worker-1", state, faulty_node=node))
    assert (found.cause, found.confidence) == (cause, Confidence.HIGH)
    assert found.message == f"its node {node.fault}"


@pytest.mark.parametrize("cut", [None, KEPT_BYTES, 1200])
@pytest.mark.parametrize(
    ("output", "cause", "rank", "code", "text"),
    [
        pytest.param(torchrun(5, -9), Cause.UNKNOWN, 5, 137, "SIGKILL", id="killed"),
        pytest.param(torchrun(5, -11), Cause.USER_CODE, 5, 139, "SIGSEGV", id="crashed"),
        pytest.param(torchrun(5, -11, before=outputs.GLOO_CLOSED), Cause.USER_CODE, 5, 139,
                     "SIGSEGV", id="crashed beside a lost peer"),
        pytest.param(torchrun(5, 42), Cause.USER_CODE, 5, 42, "exit code 42", id="own code"),
        pytest.param(torchrun(5, 1), Cause.USER_CODE, 5, 1, "exit code 1", id="no traceback"),
        pytest.param(torchrun(5, 1, traceback="ValueError: nan"), Cause.USER_CODE, 5, 1,
                     "ValueError: nan", id="traceback by @record"),
        pytest.param(torchrun(5, 1, traceback="torch.OutOfMemoryError: CUDA out of memory."),
                     Cause.OUT_OF_MEMORY, 5, 1, "CUDA out of memory", id="CUDA OOM by @record"),
        pytest.param(torchrun(4, -6, others=[(5, -11)]), Cause.USER_CODE, 5, 139, "SIGSEGV",
                     id="crash beside an abort"),
        pytest.param(torchrun(4, -15, others=[(5, 3)]), Cause.USER_CODE, 5, 3, "exit code 3",
                     id="exit beside a stop"),
    ],
)  # fmt: skip
def test_summary_of_torchrun_names_rank_and_code(
    output: str, cause: Cause, rank: int, code: int, text: str, cut: int | None
) -> None:
    message = output[-cut:] if cut else output
    found = verdict_of(failed_replica("worker-1", ended(1, message)))
    assert (found.cause, found.rank, found.exit_code) == (cause, rank, code)
    assert text in found.message


def test_rank_that_the_memory_limit_ended_is_the_one_that_torchrun_reports() -> None:
    found = verdict_of(failed_replica("worker-1", ended(1, torchrun(5, -9), reason="OOMKilled")))
    assert (found.cause, found.rank, found.exit_code) == (Cause.OUT_OF_MEMORY, 5, 137)


def test_exception_above_the_summary_of_torchrun_is_the_cause() -> None:
    before = raised("ValueError: nan", tag="[rank6]: ") + outputs.GLOO_CLOSED
    output = torchrun(5, 1, others=[(6, 1)], before=before)
    found = verdict_of(failed_replica("worker-1", ended(1, output)))
    assert (found.message, found.rank, found.confidence) == (
        "ValueError: nan", 6, Confidence.MEDIUM,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rank", "job"),
    [("master-0", 0, TORCH_JOB), ("worker-2", 3, TORCH_JOB), ("worker-2", 2, JAX_JOB),
     ("worker-2", None, MPI_JOB)],
)  # fmt: skip
def test_rank_of_a_replica_with_one_process_is_its_position(
    name: str, rank: int | None, job: Any
) -> None:
    assert verdict_of(failed_replica(name, ended(1), job=job), job=job).rank == rank


@pytest.mark.parametrize(
    ("output", "is_consequence"),
    [
        pytest.param("RuntimeError: Connection closed by peer [10.0.0.7]:29500", True, id="peer"),
        pytest.param("ValueError: the learning rate is negative", False, id="exception"),
        pytest.param(raised("OSError: bad image") + _WORK + outputs.NCCL_REMOTE, True,
                     id="peer, long after an exception that was handled"),
        pytest.param(raised("OSError: bad image") + outputs.NCCL_REMOTE, False,
                     id="exception, and soon a peer"),
        pytest.param("MeanSquaredError: 0.034\nstep 4\n" + outputs.NCCL_REMOTE, True,
                     id="peer, and a metric by the name of an error"),
        pytest.param("", False, id="no output"),
    ],
)  # fmt: skip
def test_output_that_only_misses_a_peer_is_a_consequence(output: str, is_consequence: bool) -> None:
    found = verdict_of(failed_replica("worker-1", ended(1, output)))
    assert found.is_consequence is is_consequence
