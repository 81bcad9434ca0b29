"""``dlctl run``: run jobs on an embedded cluster and watch them until they finish.

Imports little; the work is in :mod:`dlctl.cli.embedded.run_session`.
"""

import argparse
import sys
from pathlib import Path

from dlctl.cli.arguments import CommandParser
from dlctl.cli.embedded.argument_checks import home_path
from dlctl.cli.embedded.cluster_options import add_cluster_arguments, parse_cluster_options
from dlctl.cli.embedded.output_options import add_output_arguments, parse_output_options
from dlctl.cli.embedded.script_options import add_script_arguments, given_without_kind, parse_script
from dlctl.cli.interrupts import run_until_signalled
from dlctl.cli.manifests.loading import Manifest, load, program_error
from dlctl.errors import ConfigError


def configure(parser: CommandParser) -> None:
    parser.description = (
        "Run jobs on an embedded cluster, watch them until they finish, and tear everything down. "
        "Exit code: 0 if all jobs succeeded, 1 if not, 2 for an invalid manifest or setting."
    )
    parser.runs_program = True
    parser.usage = (
        "dlctl run [options] FILE...\n"
        "       dlctl run [options] --kind KIND --workers N SCRIPT [-- ARGUMENTS]\n"
        "       dlctl run [options] --kind KIND --workers N -m MODULE [-- ARGUMENTS]"
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="manifests, - for stdin; with --kind, a script",
    )
    add_script_arguments(parser)
    add_cluster_arguments(parser)
    parser.add_argument(
        "-n",
        "--namespace",
        default="default",
        help="namespace of objects that set none (%(default)s)",
    )
    add_output_arguments(parser)
    parser.add_argument(
        "--keep", action="store_true", help="keep the cluster running afterwards, until Ctrl-C"
    )
    parser.add_argument(
        "--record", type=home_path, metavar="FILE", help="write the last screen to FILE as SVG"
    )
    parser.set_defaults(command=run, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    options = parse_cluster_options(args)
    script = parse_script(args, options) if args.kind else None
    if script and args.dry_run:
        print(script.text(), end="")
        return 0
    if script:
        print(
            f"Python of the script: {script.prefix} (--python PREFIX changes it)",
            file=sys.stderr if args.output else sys.stdout,
        )
    from dlctl.cli.embedded.run_session import RunSession

    session = RunSession(
        manifests=[Manifest(script.manifest)] if script else _manifests(args),
        title=f"dlctl run {' '.join(Path(name).name for name in args.files)}",
        options=script.applied(options) if script else options,
        namespace=args.namespace,
        output=parse_output_options(args),
        keep=args.keep,
        record=args.record,
    )
    return run_until_signalled(session.run)


def _manifests(args: argparse.Namespace) -> list[Manifest]:
    scripts = [name for name in args.files if name.endswith(".py")]
    if scripts or args.module:
        raise program_error(args.module or scripts[0])
    if not args.files:
        args.usage_error("name a manifest, or a script with --kind")
    if args.program_arguments:
        raise ConfigError("arguments after -- are for scripts: change the manifest instead")
    if args.dry_run:
        raise ConfigError("--dry-run is for scripts; dlctl render prints the pods of a manifest")
    if option := given_without_kind(args):
        raise ConfigError(f"{option} is for scripts: change the manifest instead")
    return list(load(args.files))
