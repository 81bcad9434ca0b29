"""One ``dlctl up``: start, print how to use it, wait, tear down."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

import attrs
import yaml

from dlctl import logs
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import (
    EmbeddedControlPlane,
    describe_network,
    embedded_control_plane,
    usage,
)
from dlctl.cli.installed_kinds import installed_kinds
from dlctl.cli.interrupts import Interrupts
from dlctl.errors import ConfigError, config_errors
from dlctl.local.data_directory import DataDirectory
from dlctl.local.private_file import write_private_file


@attrs.frozen(kw_only=True)
class UpSession:
    """The arguments of one ``dlctl up``; :meth:`run` executes it, once."""

    options: ClusterOptions
    kubeconfig: Path | None = None
    data: Path | None = None
    controller: bool = True
    # Called once the cluster is ready, with how to use it.
    announce: Callable[[str], None]
    # How to end it.
    end: str

    async def run(self, interrupts: Interrupts) -> int:
        """Run until the first signal; nothing is left running, however this ends."""
        # Less would move the way to use the cluster off the screen: a line for each kind.
        logs.configure(sys.stderr, level="warning", format_=logs.LogFormat.CONSOLE)
        served = installed_kinds()
        if self.kubeconfig:
            _check_is_own_copy(self.kubeconfig)
        async with AsyncExitStack() as stack:
            run_dir = stack.enter_context(interrupts.temporary_directory())
            data = stack.enter_context(DataDirectory.open(self.data)) if self.data else None
            running = await stack.enter_async_context(
                embedded_control_plane(
                    served,
                    self._options(data),
                    controller=self.controller,
                    run_dir=run_dir,
                    data=data,
                )
            )
            to = self.kubeconfig or (data.kubeconfig if data else None)
            with _copy(running.kubeconfig, to) as path:
                names = ", ".join(kind.resource.group_resource for kind in served)
                self.announce(self._usage(running, names, path))
                await interrupts.wait()
                print("ending", file=sys.stderr)
                await running.end_pods(interrupts, lambda line: print(line, file=sys.stderr))
        return 0

    def _options(self, data: DataDirectory | None) -> ClusterOptions:
        """Return the options, with the claims in the data directory unless they are elsewhere."""
        directories = self.options.directories
        if data is None or directories.claims is not None:
            return self.options
        data.volumes.mkdir(mode=0o700, exist_ok=True)
        kept = attrs.evolve(directories, claims=data.volumes)
        return attrs.evolve(self.options, directories=kept)

    def _usage(self, running: EmbeddedControlPlane, names: str, kubeconfig: Path) -> str:
        facts = {
            "API server": running.cluster.server.url,
            "network": describe_network(running.cluster.network),
            "kinds": names,
            "controller": "running" if self.controller else "none; run `dlctl controller`",
            "data": f"kept in {self.data}" if self.data else "deleted at the end; --data keeps it",
        }
        lines = [f"{name:<12}{fact}" for name, fact in facts.items()]
        return "\n".join([*lines, "", usage(kubeconfig), "", self.end])


@contextmanager
def _copy(kubeconfig: Path, to: Path | None) -> Iterator[Path]:
    """Yield the path of the kubeconfig; a copy at ``to`` is deleted when the block ends.

    :raises ConfigError: if ``to`` cannot be written.
    """
    if to is None:
        yield kubeconfig
        return
    with config_errors(f"--kubeconfig {to}"):
        write_private_file(to, kubeconfig.read_text(encoding="utf-8"))
    try:
        yield to.absolute()
    finally:
        to.unlink(missing_ok=True)


def _check_is_own_copy(path: Path) -> None:
    content = None
    with config_errors(f"--kubeconfig {path}"), suppress(UnicodeDecodeError, yaml.YAMLError):
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            if not path.absolute().parent.is_dir():
                message = f"--kubeconfig {path}: its directory does not exist"
                raise ConfigError(message) from None
            return
    if not isinstance(content, dict) or content.get("current-context") != "dlctl":
        raise ConfigError(
            f"--kubeconfig {path}: the file exists and is not dlctl's; "
            "remove it or choose another path"
        )
