"""The manifest of a job that runs one program, for each kind by the name that users type.

``dlctl run --kind`` puts the user's script into it, ``dlctl new`` a sample. Pure.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.cli.suggestions import did_you_mean
from dlctl.errors import ConfigError

Counts = Mapping[str, int]
# The replica types of all kinds that train; others start, coordinate or serve parameters.
_TRAINING_TYPES: Final = ("master", "worker")


@attrs.frozen
class Program:
    """The program of the replicas; ``env`` is added to the variables of their framework.

    ``limits`` are the resources of each process that trains.
    """

    command: Sequence[str]
    image: str
    env: Mapping[str, str] = attrs.field(factory=dict)
    limits: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class JobForm:
    """A kind of job: which replicas it has for a number of workers, and what starts a program."""

    kind: str
    # The names that users may give it, the usual name first.
    names: Sequence[str]
    specs_field: str
    container: str
    # Replicas by type for a number of workers.
    counts: Callable[[int], Counts]
    # Which replicas the workers are, and which come on top.
    workers_note: str
    # A command that shows what a replica knows of the others, and the fields of spec it needs.
    sample: Sequence[str]
    sample_spec: Mapping[str, Any] = attrs.field(factory=dict)
    api_version: str = "kubeflow.org/v1"
    # Precedes the program; ``{workers}`` stands for their number.
    starter: Sequence[str] = ()
    # Types that run no program of their own: the launcher starts it in them.
    idle_types: Sequence[str] = ()
    env: Mapping[str, str] = attrs.field(factory=dict)
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    # Without this field, a failed replica is not restarted anyway.
    restart_policy: str = "Never"
    # Which policies restart a replica.
    restart_note: str = "OnFailure, Always or ExitCode restart a replica"

    def started(self, command: Sequence[str], workers: int) -> list[str]:
        """Return the command that runs the given one in all workers, as the framework wants it."""
        return [*(word.format(workers=workers) for word in self.starter), *command]

    def manifest(self, name: str, workers: int, program: Program) -> JSON:
        """Return a job of the kind with this many workers, and the program in its replicas."""
        env = [{"name": key, "value": text} for key, text in ({**self.env, **program.env}).items()]
        specs = {}
        for type_, count in self.counts(workers).items():
            container: JSON = {"name": self.container, "image": program.image}
            if type_ not in self.idle_types:
                container["command"] = list(program.command)
            if env:
                container["env"] = env
            if program.limits and type_.lower() in _TRAINING_TYPES:
                container["resources"] = {"limits": dict(program.limits)}
            specs[type_] = self._replica(count, container)
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": {**self.spec, self.specs_field: specs},
        }

    def _replica(self, count: int, container: JSON) -> JSON:
        policy = {"restartPolicy": self.restart_policy} if self.restart_policy else {}
        return {"replicas": count, **policy, "template": {"spec": {"containers": [container]}}}


def complete_kinds(argument: argparse.Action) -> None:
    """Let shells complete an argument with the usual names of the kinds."""
    argument.completer = lambda **_: KIND_NAMES  # type: ignore[attr-defined]


def job_form(name: str) -> JobForm:
    """Return the form of a kind by one of its names, in any case.

    :raises ConfigError: if no kind has the name.
    """
    wanted = name.lower()
    known = {alias: form for form in FORMS for alias in (*form.names, form.kind.lower())}
    if wanted in known:
        return known[wanted]
    names = ", ".join(KIND_NAMES)
    raise ConfigError(
        f"unknown kind of job {name!r}: use one of {names}{did_you_mean(wanted, known)}"
    )


def _master_and_workers(workers: int) -> Counts:
    return {"Master": 1, "Worker": workers - 1} if workers > 1 else {"Master": 1}


def _workers(workers: int) -> Counts:
    return {"Worker": workers}


def _launcher_and_workers(workers: int) -> Counts:
    return {"Launcher": 1, "Worker": workers}


def _print(*expressions: str) -> Sequence[str]:
    return "python3", "-c", f"import os\nprint({', '.join(expressions)})\n"


_RANK: Final = ('"rank"', 'os.environ["RANK"]', '"of"', 'os.environ["WORLD_SIZE"]')
_MPIRUN: Final = ("mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", "{workers}")
_MPIRUN_HOSTNAME: Final = ("mpirun", "--allow-run-as-root", "-np", "2", "hostname")
FORMS: Final[Sequence[JobForm]] = (
    JobForm(
        kind="PyTorchJob",
        names=("pytorch", "torch"),
        specs_field="pytorchReplicaSpecs",
        container="pytorch",
        counts=_master_and_workers,
        workers_note="the first is the master, with rank 0",
        # One process per pod, so that scripts written for torchrun run unchanged.
        env={"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"},
        sample=_print(*_RANK, '"meets the others at"', 'os.environ["MASTER_ADDR"]'),
    ),
    JobForm(
        kind="TFJob",
        names=("tf", "tensorflow"),
        specs_field="tfReplicaSpecs",
        container="tensorflow",
        counts=_workers,
        workers_note="worker 0 is the chief",
        sample=_print('"TF_CONFIG"', 'os.environ["TF_CONFIG"]'),
    ),
    JobForm(
        kind="XGBoostJob",
        names=("xgboost", "xgb", "lightgbm"),
        specs_field="xgbReplicaSpecs",
        container="xgboost",
        counts=_master_and_workers,
        workers_note="the first is the master, with rank 0",
        sample=_print(*_RANK, '"finds the tracker at"', 'os.environ["MASTER_ADDR"]'),
    ),
    JobForm(
        kind="PaddleJob",
        names=("paddle", "paddlepaddle"),
        specs_field="paddleReplicaSpecs",
        container="paddle",
        counts=_workers,
        workers_note="they meet at worker 0",
        starter=("python3", "-m", "paddle.distributed.launch"),
        sample=_print(
            'os.environ["PADDLE_NNODES"]', '"nodes meet at"', 'os.environ["PADDLE_MASTER"]'
        ),
    ),
    JobForm(
        kind="JAXJob",
        names=("jax",),
        specs_field="jaxReplicaSpecs",
        container="jax",
        counts=_workers,
        workers_note="worker 0 is the coordinator",
        sample=_print(
            *('"process"', 'os.environ["PROCESS_ID"]', '"of"', 'os.environ["NUM_PROCESSES"]'),
            *('"meets the others at"', 'os.environ["COORDINATOR_ADDRESS"]'),
        ),
    ),
    JobForm(
        kind="MPIJob",
        names=("mpi-ssh",),
        api_version="kubeflow.org/v2beta1",
        specs_field="mpiReplicaSpecs",
        container="mpi",
        counts=_launcher_and_workers,
        workers_note="a launcher, which runs mpirun and reaches the workers by ssh, comes on top",
        starter=_MPIRUN,
        idle_types=("Worker",),
        spec={"slotsPerWorker": 1, "runPolicy": {"backoffLimit": 0}},
        sample=_MPIRUN_HOSTNAME,
        restart_note="OnFailure restarts it",
    ),
    JobForm(
        kind="MPIJob",
        names=("mpi",),
        specs_field="mpiReplicaSpecs",
        container="mpi",
        counts=_launcher_and_workers,
        workers_note="a launcher, which runs mpirun, comes on top",
        starter=_MPIRUN,
        idle_types=("Worker",),
        spec={"slotsPerWorker": 1},
        sample=_MPIRUN_HOSTNAME,
    ),
    JobForm(
        kind="MXJob",
        names=("mxnet", "mx"),
        specs_field="mxReplicaSpecs",
        container="mxnet",
        counts=lambda workers: {"Scheduler": 1, "Server": 1, "Worker": workers},
        workers_note="a scheduler and a server come on top, and run the same program",
        spec={"jobMode": "MXTrain"},
        sample=_print(
            *('os.environ["DMLC_ROLE"]', '"of"', 'os.environ["DMLC_NUM_WORKER"]', '"workers"'),
            *('"meets the others at"', 'os.environ["DMLC_PS_ROOT_URI"]'),
        ),
    ),
    JobForm(
        kind="TrainingJob",
        names=("horovod", "training"),
        api_version="kai.alibabacloud.com/v1alpha1",
        specs_field="etReplicaSpecs",
        container="horovod",
        counts=lambda workers: {"launcher": 1, "worker": workers},
        workers_note="a launcher, which runs horovodrun, comes on top",
        starter=(
            *("horovodrun", "--gloo", "-np", "{workers}"),
            *("--host-discovery-script", "/etc/edl/discover_hosts.sh"),
        ),
        idle_types=("worker",),
        restart_policy="",
        # By ssh, which is the default, workers need sshd and root.
        sample=("cat", "/etc/edl/hostfile"),
        sample_spec={"launcherAttachMode": "kubexec"},
    ),
)
KIND_NAMES: Final = tuple(form.names[0] for form in FORMS)
