"""``dlctl new``: print a short commented manifest of a kind, which ``dlctl run`` can run."""

import argparse
from typing import Final

from dlctl.cli.job_name_argument import job_name
from dlctl.cli.manifests.job_forms import KIND_NAMES, JobForm, Program, complete_kinds, job_form
from dlctl.cli.manifests.text import commented

_WORKERS: Final = 2
_IMAGE: Final = "python:3.11"
_NEEDS: Final = {
    "mpi": "It needs Open MPI and kubectl on this machine. ",
    "mpi-ssh": "It needs Open MPI and an SSH server on this machine. ",
    "horovod": "The sample shows the host file; horovodrun starts a real training. ",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a short commented manifest of a kind, to start from: "
        "dlctl new pytorch > job.yaml && dlctl run job.yaml"
    )
    kind = parser.add_argument(
        "kind", nargs="?", metavar="KIND", help=f"one of {', '.join(KIND_NAMES)}"
    )
    complete_kinds(kind)
    parser.add_argument("--name", type=job_name, help="name of the job (default: that of the kind)")
    parser.set_defaults(command=new, usage_error=parser.error)


def new(args: argparse.Namespace) -> int:
    if args.kind is None:
        args.usage_error(f"name a kind: {', '.join(KIND_NAMES)}")
    form = job_form(args.kind)
    print(sample_text(form, args.name or form.names[0]), end="")
    return 0


def sample_text(form: JobForm, name: str) -> str:
    """Return the manifest of a job that shows what its replicas know of each other."""
    manifest = form.manifest(name, _WORKERS, Program(form.sample, _IMAGE))
    manifest["spec"] = {**form.sample_spec, **manifest["spec"]}
    header = [
        f"{form.kind} with {_WORKERS} workers: {form.workers_note}.",
        f"{_NEEDS.get(form.names[0], '')}Run it on this machine as it is:",
        "",
        "    dlctl run job.yaml",
    ]
    return commented(manifest, header, _notes(form))


def _notes(form: JobForm) -> dict[str, str]:
    first, *_ = form.counts(_WORKERS)
    return {
        "launcherAttachMode": "without it, the launcher reaches its workers by ssh",
        "slotsPerWorker": "processes in each worker",
        first: "a type of replica; each has its own template",
        "backoffLimit": "how often the launcher is retried; 6 times by default",
        "restartPolicy": form.restart_note,
        "image": "on a laptop, --image NAME=PREFIX maps it to a Python environment",
        "command": "your program; by default, the image's own",
    }
