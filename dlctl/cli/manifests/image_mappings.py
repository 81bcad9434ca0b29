"""Checks of the ``--image`` mappings against the images that the manifests name."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dlctl.cli.manifests.loading import Manifest, images
from dlctl.errors import ConfigError
from dlctl.local.node.containers.images import find, unused


def check_mappings_used(mappings: Mapping[str, Path], manifests: Sequence[Manifest]) -> None:
    """Raise a ConfigError if a mapping applies to no container."""
    names = list(dict.fromkeys(images([manifest.obj for manifest in manifests])))
    for name in unused(mappings, names):
        raise ConfigError(
            f"--image {name}={mappings[name]}: no container uses this image; the manifests name "
            f"{', '.join(names) or 'no image'}"
        )


def unmapped_lines(mappings: Mapping[str, Path], manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield images that are not mapped: a program may have missed a module because of it."""
    for name in dict.fromkeys(images([manifest.obj for manifest in manifests])):
        if find(mappings, name).target is None:
            yield (
                f"image {name} is not mapped: its containers run this machine's programs; "
                f"map it with --image {name}=PREFIX"
            )
