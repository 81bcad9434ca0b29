"""The files of one pod on this machine."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Self

import attrs

from dlctl.api.meta import UID
from dlctl.local.node.api_access import ServiceAccountFiles


@attrs.frozen
class PodPaths:
    """The directories of one pod, all within one that is removed with the pod."""

    root: Path

    @classmethod
    def of(cls, run_dir: Path, pod: UID) -> Self:
        return cls(run_dir / "pods" / pod)

    @property
    def hosts(self) -> Path:
        return self.root / "hosts"

    @property
    def volumes(self) -> Path:
        return self.root / "volumes"

    @property
    def work(self) -> Path:
        """The working directory of containers whose own does not exist on this machine."""
        return self.root / "work"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def account(self) -> Path:
        return self.root / "serviceaccount"

    @property
    def kube(self) -> Path:
        """The substitute for the owner's directory of kubectl."""
        return self.root / "kube"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    def logs(self, container: str) -> Path:
        return self.root / "logs" / container

    def ssh(self, container: str) -> Path:
        return self.root / "ssh" / container

    def message(self, container: str) -> Path:
        return self.root / "messages" / container

    @property
    def _directories(self) -> tuple[Path, ...]:
        own = ("messages", "ssh")
        return self.volumes, self.work, self.scratch, self.kube, *(self.root / n for n in own)

    def make(self) -> None:
        for path in self._directories:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def remove(self, *, keep_logs: bool) -> None:
        """Remove the directories; whatever fails is removed with the run directory."""
        if not keep_logs:
            shutil.rmtree(self.root, ignore_errors=True)
        elif self.root.exists():
            for file in (self.hosts, ServiceAccountFiles(self.account).kubeconfig):
                with suppress(OSError):
                    file.unlink()
            for path in (*self._directories, self.account):
                shutil.rmtree(path, ignore_errors=True)
