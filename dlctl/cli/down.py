"""``dlctl down``: end a cluster that ``dlctl up --detach`` has started."""

import argparse
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from dlctl.cli.embedded.named_clusters import DEFAULT_NAME, NamedCluster, running_clusters

# Its programs have up to 30 s to end.
_TIMEOUT_S: Final = 60.0
_EXPLAINED_AFTER_S: Final = 1.0
_PAUSE_S: Final = 0.05


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "End a cluster that `dlctl up --detach` has started, with all of its pods. Their programs "
        "have their grace periods, up to 30 s, to save their work; a second `dlctl down` ends "
        "them at once."
    )
    parser.add_argument(
        "--name", default=DEFAULT_NAME, help="the name it was started with (%(default)s)"
    )
    parser.set_defaults(command=down)


def down(args: argparse.Namespace) -> int:
    """Return once its process has ended; 1 if there is none, or it does not end."""
    cluster = NamedCluster.of(args.name)
    process = cluster.process
    if process is None:
        others = ", ".join(running_clusters())
        known = f"; those that run: {others}" if others else ""
        print(f"dlctl: no cluster named {args.name} is running{known}", file=sys.stderr)
        return 1
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
    begin, has_explained = time.monotonic(), False
    # A process that a second signal ends frees its name at once, and then ends its programs.
    while cluster.process == process or _lives(process):
        waited_s = time.monotonic() - begin
        if waited_s > _EXPLAINED_AFTER_S and not has_explained:
            again = f"`{cluster.end_command}` again ends them at once"
            print(f"the programs have up to 30 s to end; {again}", file=sys.stderr, flush=True)
            has_explained = True
        if waited_s > _TIMEOUT_S:
            print(f"dlctl: process {process} has not ended; see {cluster.log}", file=sys.stderr)
            return 1
        time.sleep(_PAUSE_S)
    print(f"cluster {args.name} has ended")
    return 0


def _lives(process: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    # Its state follows the name, which may contain anything.
    return stat.rpartition(") ")[2][:1] != "Z"
