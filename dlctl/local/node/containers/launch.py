"""From a container of a manifest to the program that the agent executes.

All decisions about command, environment, working directory and mounts are made here. It checks
whether directories exist, so it runs off the event loop.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from dlctl.local.node.api_access import MOUNT_PATH, ServiceAccountFiles
from dlctl.local.node.api_types import Container, NodePod, VolumeMount
from dlctl.local.node.containers.downward_api import PodPlacement
from dlctl.local.node.containers.env import INHERITED, environment, expand, expand_all
from dlctl.local.node.containers.images import Image
from dlctl.local.node.containers.pod_paths import PodPaths
from dlctl.local.node.containers.references import ConfigSources
from dlctl.local.node.containers.ssh_settings import ssh_mounts
from dlctl.local.node.containers.substitution import replace
from dlctl.local.node.containers.volumes import UnsupportedVolumeError
from dlctl.local.node.directories import NodeDirectories
from dlctl.local.node.protocol import MESSAGE_PATH, Mount, StartContainer

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Programs are root's on this machine if dlctl is, which mpirun would refuse.
_ROOT_FOR_ANOTHER: Final = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
_STARTUP_FILES: Final = (".bashrc", ".bash_profile", ".profile", ".zshenv")


@attrs.frozen
class PodRuntime:
    """The shared environment of a pod's containers, once the pod is set up."""

    pod: NodePod
    place: PodPlacement
    paths: PodPaths
    isolated: bool
    sources: ConfigSources
    volumes: Mapping[str, Path]
    directories: NodeDirectories
    # Name resolution for all pods: replacements of files in /etc.
    etc: Mapping[str, Path]
    # Empty in isolated networks, where names are resolved instead.
    names: Mapping[str, str]
    # Variables with the address of the API server; empty where pods cannot reach it.
    api: Mapping[str, str]
    account: ServiceAccountFiles | None
    # Variables by container that restrict it to its devices.
    device_env: Mapping[str, Mapping[str, str]]
    warn: Callable[[str, str], None]

    def start_request(self, container: Container, image: Image, log_path: Path) -> StartContainer:
        """Return the program to start; raise a DlctlError that names what is missing."""
        given = environment(container, self.pod, self.place, self.sources)
        argv = [expand(word, given) for word in image.command(container.command, container.args)]
        mounted = self._mounts(container)
        replacements = self._replacements(container, mounted)
        given = {name: replace(value, replacements) for name, value in given.items()}
        env = self._env(container, given, image)
        return StartContainer(
            id=0,
            container=f"{self.pod.metadata.uid}/{container.name}/{log_path.stem}",
            pod=self.pod.metadata.uid,
            argv=[replace(word, replacements) for word in argv],
            env=env,
            cwd=self._directory(container, image, replacements),
            log_path=str(log_path),
            hostname=self.pod.hostname,
            mounts=[
                *mounted,
                *self._own_mounts(container),
                *ssh_mounts(mounted, self.paths.ssh(container.name), env["PATH"]),
                *self.directories.mounts,
            ]
            if self.isolated
            else [],
            scratch=str(self.paths.scratch),
        )

    def exec_argv(self, container: Container, argv: Sequence[str]) -> list[str]:
        """Return a command to execute beside the container's program."""
        replacements = self._replacements(container, self._mounts(container))
        return [replace(word, replacements) for word in argv]

    def _replacements(self, container: Container, mounted: Sequence[Mount]) -> dict[str, str]:
        if self.isolated:
            return dict(self.names)
        account = (self.account.mount(),) if self.account else ()
        message = self._message_mount(container)
        shown = [*mounted, *account, message, *self.directories.mounts]
        return {**self.names, **{mount.target.rstrip("/"): mount.source for mount in shown}}

    def _env(self, container: Container, given: Mapping[str, str], image: Image) -> dict[str, str]:
        env = {name: os.environ[name] for name in INHERITED if name in os.environ}
        # The output of a Python program is seen as it is written, unless the manifest objects.
        env |= {"HOSTNAME": self.pod.hostname, "PYTHONUNBUFFERED": "1", **self.api}
        env |= self.device_env.get(container.name, {})
        if self.account and not self.isolated:
            env["KUBECONFIG"] = str(self.account.kubeconfig)
        if os.geteuid() == 0 and self.pod.spec.run_as_user(container):
            env |= _ROOT_FOR_ANOTHER
        env |= given
        env["PATH"] = image.path(env.get("PATH", DEFAULT_PATH))
        return env

    def _directory(
        self, container: Container, image: Image, replacements: Mapping[str, str]
    ) -> str:
        wanted = container.working_dir
        default = self._default_directory(container, replacements)
        if wanted is None:
            return default
        if self._is_mounted(wanted, container) and self.isolated:
            return wanted
        found = image.directory(replace(wanted, replacements))
        if found is None:
            self.warn(
                "WorkingDirMissing",
                f'container "{container.name}": workingDir {wanted} is not on this machine; '
                f"using {default}",
            )
            return default
        return str(found)

    def _default_directory(self, container: Container, replacements: Mapping[str, str]) -> str:
        if self.directories.working_dir:
            return replace(self.directories.working_dir, replacements)
        # A volume on /tmp may hide this working directory.
        hidden = self.isolated and self._is_mounted(str(self.paths.work), container)
        return "/" if hidden else str(self.paths.work)

    def _is_mounted(self, path: str, container: Container) -> bool:
        targets = [mount.mount_path for mount in container.volume_mounts or ()]
        targets += [mount.target for mount in self.directories.mounts]
        return any(Path(path).is_relative_to(target) for target in targets)

    def _mounts(self, container: Container) -> list[Mount]:
        return [self._mount(mount, container) for mount in container.volume_mounts or ()]

    def _mount(self, mount: VolumeMount, container: Container) -> Mount:
        if mount.name not in self.volumes:
            raise UnsupportedVolumeError(f'volumeMounts: volume "{mount.name}" is not defined')
        source = self.volumes[mount.name]
        if sub_path := self._sub_path(mount, container):
            source = source / sub_path
            if not source.exists():
                source.mkdir(parents=True)
        read_only = bool(mount.read_only) or mount.name in self._read_only_claims
        return Mount(str(source), mount.mount_path, read_only)

    def _sub_path(self, mount: VolumeMount, container: Container) -> str:
        if not mount.sub_path_expr:
            return mount.sub_path or ""
        env = environment(container, self.pod, self.place, self.sources)
        path = expand_all(mount.sub_path_expr, env)
        if Path(path).is_absolute() or ".." in Path(path).parts:
            # Checked here, since the API server does not know the values.
            raise UnsupportedVolumeError(
                f'subPathExpr {mount.sub_path_expr} is "{path}": use a relative path without ".."'
            )
        return path

    def _message_mount(self, container: Container) -> Mount:
        path = container.termination_message_path or MESSAGE_PATH
        return Mount(str(self.paths.message(container.name)), path)

    @property
    def _read_only_claims(self) -> set[str]:
        volumes = self.pod.spec.volumes or ()
        claims = {volume.name: volume.persistent_volume_claim for volume in volumes}
        return {name for name, claim in claims.items() if claim and claim.read_only}

    def _own_mounts(self, container: Container) -> list[Mount]:
        mounts = [Mount(str(source), target) for target, source in self.etc.items()]
        if not self.pod.spec.host_network:
            mounts.append(Mount(str(self.paths.hosts), "/etc/hosts"))
        return [*mounts, self._message_mount(container), *self._user_mounts(container)]

    def _user_mounts(self, container: Container) -> list[Mount]:
        """Return mounts that give the container its own account, instead of the machine owner's."""
        mounts = []
        if self.account and not self._is_mounted(MOUNT_PATH, container):
            mounts.append(self.account.mount())
        # A user without a home directory has neither kubeconfig nor startup files.
        home = Path(os.path.expanduser("~"))
        theirs = home / ".kube"
        # Unlike methods of Path, these also take what may not be looked into as missing.
        if os.path.isdir(theirs) and not self._is_mounted(str(theirs), container):
            mounts.append(Mount(str(self.paths.kube), str(theirs)))
        # A login by ssh is not the owner's: their shell's startup files do not apply.
        startup = (home / name for name in _STARTUP_FILES)
        mounts += [Mount(os.devnull, str(file)) for file in startup if os.path.isfile(file)]
        return mounts
