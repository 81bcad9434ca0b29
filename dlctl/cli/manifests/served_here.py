"""Which objects beside jobs an embedded cluster serves, known before it starts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dlctl.api.meta import CRDS
from dlctl.cli.manifests.checks import Problem
from dlctl.cli.manifests.loading import Manifest, job_kind
from dlctl.cli.manifests.pod_references import entries, entry
from dlctl.cli.manifests.unserved_kinds import not_served
from dlctl.dialects.kind import Kind
from dlctl.local.apiserver.auth import reviews
from dlctl.local.apiserver.builtins import strategies
from dlctl.local.apiserver.resources import ResourceRegistry


def unserved_problems(kinds: Sequence[Kind], manifests: Sequence[Manifest]) -> Iterator[Problem]:
    """Yield the objects of which a cluster with these manifests alone serves no kind."""
    served: dict[str, set[str]] = defaultdict(set)
    for api_version, kind in _served(kinds, manifests):
        served[api_version].add(kind)
    for manifest in manifests:
        api_version, name = str(manifest.obj.get("apiVersion")), str(manifest.obj.get("kind"))
        if job_kind(kinds, manifest.obj) is None and name not in served[api_version]:
            yield Problem(manifest, ("kind",), not_served(api_version, name, served[api_version]))


def _served(kinds: Iterable[Kind], manifests: Iterable[Manifest]) -> Iterator[tuple[str, str]]:
    """Yield each apiVersion and kind."""
    registry = ResourceRegistry()
    strategies.register(registry)
    reviews.register(registry)
    built_in = [each.resource for each in registry]
    for resource in (CRDS, *built_in, *(scaler for kind in kinds for scaler in kind.scalers)):
        yield resource.api_version, resource.kind
    for manifest in manifests:
        if (manifest.obj.get("apiVersion"), manifest.obj.get("kind")) == (
            CRDS.api_version,
            CRDS.kind,
        ):
            yield from _defined(manifest.obj)


def _defined(crd: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    spec = entry(crd, "spec")
    for _, version in entries(spec, "versions"):
        yield f"{spec.get('group')}/{version.get('name')}", str(entry(spec, "names").get("kind"))
