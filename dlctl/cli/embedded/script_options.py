"""``dlctl run --kind``: a job made from the user's script, in the user's Python environment."""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from dlctl.cli.embedded.argument_checks import path_of
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.job_name_argument import job_name
from dlctl.cli.manifests.job_forms import JobForm, Program, complete_kinds, job_form
from dlctl.cli.manifests.text import commented
from dlctl.errors import ConfigError, counted

_WORKERS: Final = 1
_GPU: Final = "nvidia.com/gpu"
_PLACEHOLDER: Final = "registry.example.com/my-training:latest"
# With room for what children add: ``-worker-9999``.
_MAX_NAME_CHARS: Final = 40


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "your own script instead of a manifest",
        "dlctl run --kind pytorch --workers 2 train.py -- --lr 0.1",
    )
    kind = group.add_argument("--kind", help="the kind of job to make: pytorch, tf, jax, mpi, ...")
    complete_kinds(kind)
    group.add_argument(
        "--workers",
        type=int,
        default=_WORKERS,
        metavar="N",
        help="how many processes train; a master is one of them, a launcher, scheduler or "
        "parameter server is not (%(default)s)",
    )
    group.add_argument("-m", "--module", help="run a module, as python -m does, and no FILE")
    group.add_argument(
        "--python",
        metavar="PREFIX",
        help="Python environment of the script (default: the active one, else dlctl's)",
    )
    group.add_argument(
        "-e",
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="set a variable, by default to its value here; repeatable",
    )
    group.add_argument(
        "--gpus",
        metavar="N",
        help=f"GPUs of each worker; of {_GPU}, or as another resource: amd.com/gpu=N",
    )
    group.add_argument(
        "--name", type=job_name, help="name of the job (default: that of the script)"
    )
    group.add_argument(
        "--container-image", metavar="NAME", help="image in the manifest, for a cluster"
    )
    group.add_argument("--dry-run", action="store_true", help="print the manifest and run nothing")


def given_without_kind(args: argparse.Namespace) -> str:
    """Return an option that is for scripts, if one was given; otherwise an empty string."""
    given = {
        "--workers": args.workers != _WORKERS,
        "--python": args.python,
        "--env": args.env,
        "--gpus": args.gpus,
        "--name": args.name,
        "--container-image": args.container_image,
    }
    return next((option for option, value in given.items() if value), "")


@attrs.frozen(kw_only=True)
class ScriptJob:
    """A job that runs a script of this machine."""

    form: JobForm
    name: str
    workers: int
    program: Program
    working_dir: str
    # The Python environment.
    prefix: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return self.form.manifest(self.name, self.workers, self.program)

    @property
    def _flags(self) -> list[str]:
        """The flags with which the manifest runs here."""
        image = f"{self.program.image}={self.prefix}"
        return ["--workdir", self.working_dir, "--image", image]

    def text(self) -> str:
        """Return the manifest with comments on what to change for a cluster."""
        header = [
            f"{self.form.kind} with {counted(self.workers, 'worker')}: {self.form.workers_note}.",
            "On this machine:",
            f"    dlctl run FILE {shlex.join(self._flags)}",
            "For a cluster, change what the comments name; then kubectl apply -f FILE.",
        ]
        notes = {
            "image": "CHANGE: an image with your packages, and the script in its working directory",
            "restartPolicy": "OnFailure restarts a replica that fails, as when its node shuts down",
        }
        return commented(self.manifest, header, notes)

    def applied(self, options: ClusterOptions) -> ClusterOptions:
        """Return the options under which the manifest runs the script here."""
        return attrs.evolve(
            options,
            images={self.program.image: self.prefix, **options.images},
            directories=attrs.evolve(options.directories, working_dir=self.working_dir),
        )


def parse_script(args: argparse.Namespace, options: ClusterOptions) -> ScriptJob:
    """Return the job that the arguments describe.

    :raises ConfigError: if the script, the environment or the kind does not exist.
    """
    form = job_form(args.kind)
    _check_process_count(args)
    if args.workers < 1:
        raise ConfigError(f"--workers is {args.workers}: use 1 or more")
    command, working_dir = _command(args, options.directories.working_dir)
    program = Program(
        form.started([_literal(word) for word in command], args.workers),
        args.container_image or _PLACEHOLDER,
        dict(_variable(text) for text in args.env),
        _gpus(args.gpus) if args.gpus else {},
    )
    return ScriptJob(
        form=form,
        name=args.name or _job_name(args.module or Path(args.files[0]).stem, form),
        workers=args.workers,
        program=program,
        working_dir=working_dir,
        prefix=_prefix(args.python, os.environ),
    )


def _check_process_count(args: argparse.Namespace) -> None:
    """Reject ``-n 4``, ``-np 4`` and ``-np4``, in mpirun and others the number of processes.

    :raises ConfigError: naming the flag to use.
    """
    given = args.namespace
    if given == "p" and args.files:
        given = args.files[0]
    elif given.startswith("p"):
        given = given[1:].removeprefix("=")
    if given.isdecimal():
        raise ConfigError(f"-n is the namespace: for {given} processes, use --workers {given}")


def _command(args: argparse.Namespace, working_dir: str) -> tuple[list[str], str]:
    """Return the command of the script and the directory where it starts."""
    arguments = [*args.files[1:], *args.program_arguments]
    if args.module:
        if args.files:
            raise ConfigError(
                f"{args.files[0]}: -m runs a module and no FILE: leave it out, or write it "
                f"after --, as an argument of {args.module}"
            )
        directory = working_dir or os.getcwd()
        _check_module(args.module, directory)
        return ["python3", "-m", args.module, *arguments], directory
    if not args.files:
        raise ConfigError(f"--kind {args.kind}: name a script, or a module with -m")
    script = path_of("the script", args.files[0])
    if not script.is_file():
        found = "it is a directory: name a file in it" if script.is_dir() else "name a file"
        raise ConfigError(f"no script {args.files[0]}: {found}, or a module with -m")
    directory = working_dir or str(script.parent)
    path = script.relative_to(directory) if script.is_relative_to(directory) else script
    # With a slash: otherwise a program is looked up on PATH, and for Python a dash begins a flag.
    word = str(path) if path.is_absolute() else f"./{path}"
    if script.suffix == ".py":
        return ["python3", word if str(path).startswith("-") else str(path), *arguments], directory
    if not os.access(script, os.X_OK):
        fix = _made_runnable(args.files[0], script.suffix)
        raise ConfigError(f"{args.files[0]} is neither a .py file nor executable: {fix}")
    return [word, *arguments], directory


def _check_module(module: str, directory: str) -> None:
    """Reject the path of a file.

    :raises ConfigError: naming the module.
    """
    if "/" in module or (module.endswith(".py") and Path(directory, module).is_file()):
        dotted = module.removesuffix(".py").strip("./").replace("/", ".")
        raise ConfigError(
            f"-m {module}: a module has dots and no suffix: write -m {dotted}, or the file alone"
        )


def _made_runnable(name: str, suffix: str) -> str:
    """Return how a file that is no program becomes one."""
    if suffix in (".yaml", ".yml", ".json"):
        return "a manifest runs without --kind"
    if suffix == ".ipynb":
        return f"`jupyter nbconvert --to script {shlex.quote(name)}` makes a script of a notebook"
    return f"`chmod +x {shlex.quote(name)}` makes a program executable"


def _prefix(given: str | None, environment: Mapping[str, str]) -> Path:
    if given is None:
        active = (environment.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX"))
        found = (Path(path) for path in active if path and _has_python(Path(path)))
        return next(found, Path(sys.prefix))
    path = path_of("--python", given)
    if path.is_file() and _is_python_of(path, path.parent.parent):
        path = path.parent.parent
    if not _has_python(path):
        raise ConfigError(f"--python {given}: it has no bin/python3; name a Python environment")
    return path


def _is_python_of(program: Path, prefix: Path) -> bool:
    """Return whether a program is the ``python3`` of an environment, and no other version."""
    return _has_python(prefix) and program.samefile(prefix / "bin" / "python3")


def _has_python(prefix: Path) -> bool:
    return (prefix / "bin" / "python3").exists()


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name:
        raise ConfigError(f"--env {text}: write NAME, or NAME=VALUE")
    if not equals and name not in os.environ:
        raise ConfigError(f"--env {name}: it is not set here; write {name}=VALUE")
    return name, _literal(value if equals else os.environ[name])


def _gpus(text: str) -> dict[str, int]:
    resource, equals, count = text.rpartition("=")
    if not count.isdecimal() or (equals and "/" not in resource):
        raise ConfigError(f"--gpus {text}: write a number, or a resource such as amd.com/gpu=1")
    return {resource or _GPU: int(count)}


def _literal(text: str) -> str:
    """Return text that stays as it is where Kubernetes expands ``$(NAME)`` and ``$$``."""
    return re.sub(r"\$(?=[$(])", "$$", text)


def _job_name(stem: str, form: JobForm) -> str:
    words: Sequence[str] = re.findall(r"[a-z0-9]+", stem.lower())
    name = "-".join(words)[:_MAX_NAME_CHARS].strip("-")
    # The names of services begin with a letter.
    return name if name[:1].isalpha() else f"{form.names[0]}-{name}".strip("-")
