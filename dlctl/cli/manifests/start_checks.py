"""Why the pods of a job could never start on an embedded cluster, found before it starts."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.cli.manifests.checks import Problem
from dlctl.cli.manifests.holds import held_job, held_pods
from dlctl.cli.manifests.job_renderer import job_renderer
from dlctl.cli.manifests.loading import Manifest, as_new, job_kind, with_example_name
from dlctl.cli.manifests.pod_references import (
    Reference,
    containers,
    entries,
    entry,
    references,
    templates,
)
from dlctl.cli.manifests.served_here import unserved_problems
from dlctl.cli.manifests.yaml_lines import Path as FieldPath
from dlctl.cli.manifests.yaml_lines import dotted
from dlctl.dialects.kind import Kind
from dlctl.errors import DlctlError
from dlctl.local.apiserver.validation.names import dns_subdomain
from dlctl.local.node.containers.images import NoCommandError, find

Spec = Mapping[str, Any]
# The keys of ConfigMaps and Secrets, by kind, namespace and name.
Keys = Mapping[tuple[str, str, str], set[str]]
# The objects that the server itself creates in each namespace.
_ALWAYS_THERE: Final = (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))
_VOLUME_TYPES: Final = frozenset(
    "emptyDir configMap secret downwardAPI projected hostPath persistentVolumeClaim".split()
)


class NeverStartsError(DlctlError):
    """A pod of the manifests could never start."""


@attrs.frozen
class StartChecks:
    """Checks of jobs before they start."""

    kinds: Sequence[Kind]
    manifests: Sequence[Manifest]
    namespace: str
    images: Mapping[str, Path]
    # True if nobody else creates the objects that they refer to, or starts jobs that are held.
    alone: bool = True

    def problems(self) -> Iterator[Problem]:
        """Yield the reasons for which pods, or the objects beside them, could not start."""
        if self.alone:
            yield from unserved_problems(self.kinds, self.manifests)
        keys = {self._key(manifest.obj): _keys(manifest.obj) for manifest in self.manifests}
        for manifest in self.manifests:
            if kind := job_kind(self.kinds, manifest.obj):
                yield from self._job(kind, manifest, keys)

    def _job(self, kind: Kind, manifest: Manifest, keys: Keys) -> Iterator[Problem]:
        named = with_example_name(as_new(manifest.obj, self.namespace))
        home, name = named["metadata"]["namespace"], named["metadata"]["name"]
        renderer = job_renderer(kind, named)
        made = [renderer.dependent(dependent) for dependent in renderer.dependents(())]
        existing = {**keys, **{self._key(obj): _keys(obj) for obj in made}}
        there = [*_ALWAYS_THERE, *([("Secret", name)] if kind.creates_secrets else ())]
        existing |= {(of, home, each): set() for of, each in there}
        # All replicas of a type have the same containers.
        of_type = {replica.type: replica for replica in renderer.job.replicas}
        pods = [renderer.pod(replica) for replica in of_type.values()]
        specs = [pod["spec"] for pod in pods]
        found: list[tuple[FieldPath, str]] = []
        if self.alone:
            found += held_job(kind, named)
            found += held_pods(entry(manifest.obj, "spec"), ("spec",), specs)
        for path, spec in templates(manifest.obj):
            if _has_no_replicas(manifest.obj, path):
                continue
            found += self._commands(spec, path, pods)
            found += _volumes(spec, path)
            if self.alone:
                found += _missing(spec, path, home, existing)
                found += held_pods(spec, path, specs)
        for where, message in found:
            yield Problem(manifest, where, f"{dotted(where)}: {message}")

    def _commands(
        self, spec: Spec, path: FieldPath, pods: Sequence[JSON]
    ) -> Iterator[tuple[FieldPath, str]]:
        """Yield the containers without a command that the controller gives none either."""
        bare = [
            (container.get("name"), container.get("image"))
            for pod in pods
            for _, container in containers(pod["spec"], ())
            if not container.get("command")
        ]
        for where, container in containers(spec, path):
            if (container.get("name"), container.get("image")) in bare:
                try:
                    find(self.images, container.get("image") or "").command(None, None)
                except NoCommandError as error:
                    yield where, str(error)

    def _key(self, obj: JSON) -> tuple[str, str, str]:
        metadata = as_new(obj, self.namespace)["metadata"]
        return str(obj.get("kind")), metadata["namespace"], str(metadata.get("name"))


def _has_no_replicas(obj: JSON, path: FieldPath) -> bool:
    """Return whether a template is that of a replica type with 0 replicas."""
    of_type: Any = obj
    for step in path[:-2]:
        of_type = of_type[step]
    # A template of the whole job is also that of its launcher.
    return of_type is not obj.get("spec") and of_type.get("replicas") == 0


def _missing(
    spec: Spec, path: FieldPath, namespace: str, existing: Keys
) -> Iterator[tuple[FieldPath, str]]:
    for reference in references(spec, path):
        title = f'{reference.kind.lower()} "{reference.name}"'
        keys = existing.get((reference.kind, namespace, reference.name))
        if keys is None:
            yield reference.path, f"{title} not found{_fix(reference)}"
        elif keys and reference.key is not None and reference.key not in keys:
            listed = ", ".join(sorted(keys))
            yield reference.path, f'key "{reference.key}" not found in {title}; it has {listed}'


def _fix(reference: Reference) -> str:
    optional = "" if reference.kind == "ServiceAccount" else ", or set optional: true"
    return f": add it to the manifests that you run{optional}"


def _volumes(spec: Spec, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    for index, volume in entries(spec, "volumes"):
        where = (*path, "volumes", index)
        types = [name for name in volume if name != "name"]
        if types and not _VOLUME_TYPES.intersection(types):
            message = "a laptop has no volumes of this type: use hostPath or persistentVolumeClaim"
            yield (*where, types[0]), message
        claim = str(entry(volume, "persistentVolumeClaim").get("claimName") or "")
        if claim and dns_subdomain(claim):
            reason = "but no claim can have that name: use lower-case letters, digits, '-' and '.'"
            claim_path = (*where, "persistentVolumeClaim", "claimName")
            yield claim_path, f"is {claim!r}, {reason}"
        source = entry(volume, "hostPath")
        created = str(source.get("type") or "").endswith("OrCreate")
        if source and not created and not Path(str(source.get("path"))).exists():
            missing = f"{source.get('path')} does not exist on this machine"
            fix = "create it, or set type: DirectoryOrCreate"
            yield (*where, "hostPath", "path"), f"{missing}: {fix}"


def _keys(obj: Mapping[str, Any]) -> set[str]:
    return {key for field in ("data", "binaryData", "stringData") for key in obj.get(field) or ()}
