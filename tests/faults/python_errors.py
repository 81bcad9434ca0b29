"""Errors of Python programs, by what they print; the other replica of the job runs."""

from typing import Final

from dlctl.api.status.verdict import Cause
from tests.faults.fault import Blame, Fault, ddp, python

USER: Final = Cause.USER_CODE
_RANK_1: Final = """
import os, sys, time
if os.environ["RANK"] == "0":
    time.sleep(60)
"""


def _fault(name: str, lines: str, cause: Cause, says: str, code: int = 1) -> Fault:
    return Fault(name, ddp(python(_RANK_1 + lines)), Blame(cause, "worker-0", code), says)


def _printed(text: str, code: int = 1) -> str:
    return f"print({text!r}, file=sys.stderr); sys.exit({code})"


FAULTS: Final = [
    _fault(
        "exception",
        "raise ValueError('the learning rate is negative')",
        USER,
        "ValueError: the learning rate is negative",
    ),
    _fault(
        "chained-exceptions",
        "try:\n    {}['lr']\nexcept KeyError as error:\n    raise RuntimeError('no lr') from error",
        USER,
        "RuntimeError: no lr",
    ),
    _fault(
        "exception-in-a-thread-pool",
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "with Pool(1) as pool:\n    pool.submit(int, 'x').result()",
        USER,
        "ValueError: invalid literal for int()",
    ),
    _fault(
        "exit-with-text",
        "sys.exit('the dataset is missing: /data')",
        USER,
        "the dataset is missing: /data",
    ),
    _fault("syntax-error", "exec('def f(:')", USER, "SyntaxError"),
    _fault(
        "missing-module",
        "import flash_attention_of_nobody",
        Cause.BAD_COMMAND_OR_IMAGE,
        "No module named 'flash_attention_of_nobody'",
    ),
    _fault("missing-file", "open('/nowhere/data.bin')", USER, "FileNotFoundError"),
    _fault("assertion", "assert 1 == 2, 'shapes differ'", USER, "AssertionError: shapes differ"),
    _fault("memory-error", "bytearray(1 << 60)", Cause.OUT_OF_MEMORY, "MemoryError"),
    _fault(
        "cuda-out-of-memory",
        "class OutOfMemoryError(RuntimeError): __module__ = 'torch.cuda'\n"
        "raise OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 39.59 GiB"
        " total capacity; 37.10 GiB already allocated)')",
        Cause.OUT_OF_MEMORY,
        "CUDA out of memory",
    ),
    _fault(
        "device-side-assert",
        "raise RuntimeError('CUDA error: device-side assert triggered\\nCUDA kernel errors might be"
        " asynchronously reported at some other API call.\\nFor debugging consider passing"
        " CUDA_LAUNCH_BLOCKING=1.\\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side"
        " assertions.')",
        USER,
        "device-side assert triggered",
    ),
    _fault(
        "uncorrectable-ecc",
        "raise RuntimeError('CUDA error: uncorrectable ECC error encountered')",
        Cause.HARDWARE,
        "uncorrectable ECC",
    ),
    _fault(
        "gpu-fallen-off-the-bus",
        _printed("NVRM: Xid (PCI:0000:3b:00): 79, pid=123, GPU has fallen off the bus.", 3),
        Cause.HARDWARE,
        "fallen off the bus",
        3,
    ),
    _fault(
        "nvlink-peer-access",
        "raise RuntimeError('CUDA error: invalid access of peer GPU memory over nvlink or a"
        " hardware error')",
        Cause.HARDWARE,
        "nvlink",
    ),
    _fault(
        "disk-full",
        "raise OSError(28, 'No space left on device', 'checkpoint.pt')",
        Cause.CONFIGURATION,
        "No space left on device",
    ),
]
