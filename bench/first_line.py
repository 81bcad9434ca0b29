"""How long one waits for the first line of training, with dlctl and with its peers on one machine.

The same script, the same Python, the same number of processes, in turns; the times are compared as
ratios to torchrun, which starts nothing but the processes. Run it as
``python -m bench.first_line --python PREFIX``, with an environment that has PyTorch;
``--sdk PREFIX`` adds the Kubeflow SDK that is installed there.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from bench.tables import Figure, show

PROCESSES: Final = 3
ROUNDS: Final = 5
LIMIT_S: Final = 1800.0
SCRIPT: Final = Path(__file__).parents[1] / "examples/pytorch/linear.py"
# What the script prints once all processes have found each other.
FIRST_LINE: Final = b"epoch  1  loss"
_SDK: Final = """
import sys
from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.backends.localprocess.types import LocalProcessBackendConfig

def train(script):
    import runpy
    runpy.run_path(script)

client = TrainerClient(backend_config=LocalProcessBackendConfig())
trainer = CustomTrainer(
    func=train, func_args={"script": sys.argv[1]}, packages_to_install=["numpy"]
)
job = client.train(runtime=client.get_runtime("torch-distributed"), trainer=trainer)
for line in client.get_job_logs(job, follow=True):
    print(line, flush=True)
"""


@attrs.frozen
class Times:
    """Seconds since the command was started."""

    first_line_s: float
    end_s: float


def commands(prefix: str, sdk: str | None) -> Mapping[str, Sequence[str]]:
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={PROCESSES}"]
    workers = ["--kind", "pytorch", "--workers", str(PROCESSES), "--python", prefix]
    found = {
        "torchrun": [f"{prefix}/bin/python3", *torchrun, str(SCRIPT)],
        "dlctl run": [sys.executable, "-m", "dlctl", "run", *workers, str(SCRIPT)],
    }
    return found | (
        {"Kubeflow SDK": [f"{sdk}/bin/python3", "-c", _SDK, str(SCRIPT)]} if sdk else {}
    )


def measure(command: Sequence[str]) -> Times:
    """Run a command to its end; raise CalledProcessError if it fails or does not print the line."""
    start = time.perf_counter()
    first_line_s, output = 0.0, b""
    with subprocess.Popen(
        ["timeout", str(LIMIT_S), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout
        for line in process.stdout:
            output += line
            if FIRST_LINE in line and not first_line_s:
                first_line_s = time.perf_counter() - start
    if process.returncode or not first_line_s:
        raise subprocess.CalledProcessError(process.returncode, list(command), output)
    return Times(first_line_s, time.perf_counter() - start)


def figures(measured: Mapping[str, Sequence[Times]]) -> list[Figure]:
    medians = {
        name: Times(
            statistics.median(times.first_line_s for times in rounds),
            statistics.median(times.end_s for times in rounds),
        )
        for name, rounds in measured.items()
    }
    plain = medians["torchrun"]
    return [
        Figure(
            f"{name}: {what}",
            f"{seconds:.2f} s, {seconds / least:.2f} x",
        )
        for name, times in medians.items()
        for what, seconds, least in (
            ("first line", times.first_line_s, plain.first_line_s),
            ("end", times.end_s, plain.end_s),
        )
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", metavar="PREFIX", default="/usr", help="has PyTorch")
    parser.add_argument("--sdk", metavar="PREFIX", help="has the kubeflow package")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    chosen = commands(args.python, args.sdk)
    measured: dict[str, list[Times]] = {name: [] for name in chosen}
    try:
        for _ in range(args.rounds):
            for name, command in chosen.items():
                measured[name].append(measure(command))
    except subprocess.CalledProcessError as error:
        print(error.output.decode(errors="replace"), error, sep="\n", file=sys.stderr)
        return 1
    show(f"{PROCESSES} processes of {SCRIPT.name}, medians of {args.rounds}", figures(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
