"""Builds the image of a Dockerfile where there is no Docker: Debian's buildah and debootstrap.

``python -m e2e.image OUT`` writes an OCI archive. It takes root, and Debian as configured on this
machine; the base image stays in the cache. Nothing of the machine's configuration gets into it.
"""

import argparse
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

from e2e.cluster.image import write_archive

NAME: Final = "localhost/dlctl:e2e"
LIMIT_MB: Final = 250
_PROJECT: Final = Path(__file__).parents[1]
# Debian's venv brings the one pip that the first stage needs.
_PACKAGES: Final = "python3,python3-venv"
_EXCLUDED: Final = (
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./usr/share/doc/*",
    "./usr/share/info/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/*/*",
    "./var/lib/apt/lists/*",
    "./var/log/*",
)
# The build gets its packages from this machine's sources.
_APT: Final = "/etc/apt:/etc/apt:ro"
_PIP: Final = ("./usr/share/python-wheels", "./usr/lib/python3*/ensurepip")


class ImageError(Exception):
    """The image cannot be built here, or is not as expected."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the image to an OCI archive.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--name", default=NAME, help="%(default)s")
    parser.add_argument("--context", type=Path, default=_PROJECT, help="folder of the Dockerfile")
    parser.add_argument(
        "--limit-mb", type=int, default=LIMIT_MB, help="refuse more than %(default)s"
    )
    args = parser.parse_args()
    try:
        build(args.out, args.name, args.context)
    except ImageError as error:
        sys.exit(f"e2e.image: {error}")
    size, packed = unpacked_bytes(args.out), args.out.stat().st_size
    figures = f"{size / 1e6:.0f} MB, {packed / 1e6:.0f} MB packed"
    sys.stdout.write(f"{args.name}: {figures}, in {args.out}\n")
    if size >= args.limit_mb * 1e6:
        sys.exit(f"e2e.image: that is too large: the limit is {args.limit_mb} MB")


def build(out: Path, name: str = NAME, context: Path = _PROJECT) -> None:
    """Build the image of a folder, by default the checkout; replace what is at ``out``."""
    if os.geteuid() != 0:
        raise ImageError("only root can make a root file system: run this as root")
    base, builder = _bases(_cache())
    scratch = out.with_name(f".{out.name}.{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="dlctl-image-") as folder:
        store = ("--root", f"{folder}/root", "--runroot", f"{folder}/run")
        buildah = ("buildah", *store, "--storage-driver", "vfs")
        command = [*buildah, "build", "--quiet", "--isolation", "chroot", "--format", "oci"]
        command += ["--build-arg", f"BASE=oci-archive:{base}"]
        command += ["--build-arg", f"BUILDER=oci-archive:{builder}"]
        command += [f"--volume={mount}" for mount in (*_pip_mounts(Path(folder)), _APT)]
        try:
            _run([*command, "--tag", name, str(context)])
            _run([*buildah, "push", "--quiet", name, f"oci-archive:{scratch}:{name}"])
            scratch.replace(out)
        finally:
            scratch.unlink(missing_ok=True)


def unpacked_bytes(archive: Path) -> int:
    """Return the size of the image's files on a node."""
    with tarfile.open(archive) as tar:
        index = _json(tar, "index.json")
        manifest = _json(tar, _blob(index["manifests"][0]["digest"]))
        return sum(_unpacked(tar, layer) for layer in manifest["layers"])


def _unpacked(tar: tarfile.TarFile, layer: dict[str, Any]) -> int:
    blob = _member(tar, _blob(layer["digest"]))
    if not layer["mediaType"].endswith("gzip"):
        return int(layer["size"])
    with gzip.open(blob) as unpacked:
        return unpacked.seek(0, os.SEEK_END)


def _json(tar: tarfile.TarFile, name: str) -> Any:
    return json.load(_member(tar, name))


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    member = tar.extractfile(name)
    if member is None:
        raise ImageError(f"{name} in the archive is not a file")
    return member


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "dlctl-e2e" / "images"


def _bases(folder: Path) -> tuple[Path, Path]:
    """Return Debian with Python as images: what to run on, and with pip what to build on."""
    codename, mirror = _debian()
    base, builder = folder / f"{codename}.tar", folder / f"{codename}-build.tar"
    if base.exists() and builder.exists():
        return base, builder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".debian-", dir=folder) as scratch:
        root = Path(scratch) / "root"
        options = ("--variant=minbase", f"--include={_PACKAGES}")
        _run(["debootstrap", *options, codename, str(root), mirror], quiet=True)
        for image, waste in ((builder, _EXCLUDED), (base, _EXCLUDED + _PIP)):
            layer, written = Path(scratch) / "layer.tar", Path(scratch) / image.name
            excludes = [f"--exclude={pattern}" for pattern in waste]
            _run(["tar", "--create", f"--file={layer}", f"--directory={root}", *excludes, "."])
            write_archive(written, f"dlctl/{image.stem}", layer)
            written.replace(image)
    return base, builder


def _debian() -> tuple[str, str]:
    """Return the release of this machine, and the mirror that its apt uses for it."""
    release = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    codename = release.get("VERSION_CODENAME", "")
    form = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    for line in _run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]):
        suite, component, mirror = line.split(" ", 2)
        if (suite, component) == (codename, "main"):
            return codename, mirror
    raise ImageError(f"apt has no main component of {codename or 'Debian'}")


def _pip_mounts(folder: Path) -> Iterator[str]:
    """Yield mounts that let pip in the build find packages as pip on this machine does."""
    settings: dict[str, str] = {}
    # Higher precedence comes last.
    for line in _run([sys.executable, "-m", "pip", "config", "list"]):
        name, _, quoted = line.partition("=")
        settings[name.rpartition(".")[2]] = "".join(shlex.split(quoted))
    paths = {value for value in settings.values() if value.startswith("/")}
    yield from (f"{path}:{path}:ro" for path in paths if Path(path).exists())
    written = folder / "pip.conf"
    kept = [f"{k} = {v}" for k, v in settings.items() if v not in paths or Path(v).exists()]
    written.write_text("\n".join(["[global]", *kept, ""]))
    yield f"{written}:/etc/pip.conf:ro"


def _run(command: Sequence[str], *, quiet: bool = False) -> list[str]:
    """Run a program and return its stdout; its stderr is passed on."""
    if shutil.which(command[0]) is None:
        raise ImageError(f"{command[0]} is not there: apt-get install buildah debootstrap")
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        check=False,
        text=True,
    )
    if done.returncode:
        said = f"\n{done.stdout}{done.stderr}" if quiet else ": it said why above"
        raise ImageError(f"{command[0]} failed{said}")
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
