"""The programs of a cluster, the Go modules that pin them, and their folders.

Constants only; ``build`` creates the programs.
"""

import enum
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

_MODULES: Final = Path(__file__).parent / "modules"
# These have no module of their own here: their go.mod is taken as it was published.
_KWOK: Final = "sigs.k8s.io/kwok/cmd/kwok@v0.7.0"
_HELM: Final = "helm.sh/helm/v3/cmd/helm@v3.22.0"
_STRIPPED: Final = ("-ldflags", "-s -w")


class Release(enum.StrEnum):
    """The supported minor versions of Kubernetes."""

    OLDEST = "1.33"
    NEWEST = "1.36"

    @property
    def version(self) -> str:
        """Return the full version, as ``kubectl version`` prints it."""
        return _VERSIONS[self]


_VERSIONS: Final[Mapping[Release, str]] = {Release.OLDEST: "v1.33.13", Release.NEWEST: "v1.36.3"}


@attrs.frozen
class Program:
    """One executable: the folder of its module, or None for ``name@version``, and its package."""

    name: str
    package: str
    module: Path | None = None
    flags: Sequence[str] = _STRIPPED


# No part of a cluster: the operator that dlctl is compared with.
MPI_OPERATOR: Final = Program(
    "mpi-operator",
    "github.com/kubeflow/mpi-operator/cmd/mpi-operator",
    _MODULES / "mpi-operator",
)


def control_plane(release: Release) -> list[Program]:
    """Return the programs for an API server, fake nodes, and kubectl."""
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    return [
        Program("etcd", "go.etcd.io/etcd/server/v3", _MODULES / "etcd"),
        *(_kubernetes(name, release) for name in names),
        Program("kwok", _KWOK),
        Program("helm", _HELM),
    ]


def node(release: Release) -> list[Program]:
    """Return the additional programs of a real node."""
    slim = ("-tags", "no_btrfs no_zfs no_devmapper", *_STRIPPED)
    return [
        *(_kubernetes(name, release) for name in ("kubelet", "kube-proxy")),
        *(
            Program(
                name,
                f"github.com/containerd/containerd/v2/cmd/{name}",
                _MODULES / "containerd",
                slim,
            )
            for name in ("containerd", "containerd-shim-runc-v2", "ctr")
        ),
        Program(
            "runc",
            "github.com/opencontainers/runc",
            _MODULES / "runc",
            ("-tags", "seccomp", *_STRIPPED),
        ),
        Program("coredns", ".", _MODULES / "coredns"),
        Program("pause", ".", _MODULES / "pause"),
    ]


def _kubernetes(name: str, release: Release) -> Program:
    flags = f"-s -w -X k8s.io/component-base/version.gitVersion={release.version}"
    module = _MODULES / f"kubernetes-{release}"
    return Program(name, f"k8s.io/kubernetes/cmd/{name}", module, ("-ldflags", flags))


def folder(release: Release) -> Path:
    """Return the folder of a release's programs; each version has its own."""
    return _folder(release.version, [*control_plane(release), *node(release)])


def mpi_operator_folder() -> Path:
    """Return the folder of mpi-operator's program."""
    return _folder(MPI_OPERATOR.name, [MPI_OPERATOR])


def _folder(name: str, programs: Sequence[Program]) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(platform.machine().encode())
    for program in programs:
        digest.update(f"{program.package} {program.flags}".encode())
        if program.module and program.module.is_dir():
            digest.update((program.module / "go.mod").read_bytes())
    return cache / "dlctl-e2e" / f"{name}-{digest.hexdigest()[:12]}"
