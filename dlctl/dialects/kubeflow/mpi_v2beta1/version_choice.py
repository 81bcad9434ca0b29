"""The version that an MPIJob is meant in: v1 and v2beta1 share a CRD that converts nothing.

It is the version of the request that wrote the replica specs. It is decided once and recorded in
the status, since later writes of other versions leave traces as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from dlctl.api.objects.jobs import JobObject
from dlctl.dialects.kind import BY_SHAPE, VersionChoice
from dlctl.dialects.kubeflow.kind import TRAINING_OPERATOR
from dlctl.dialects.kubeflow.mpi_v2beta1.fields import DEFAULTS, FORM_FIELD, MPI_OPERATOR, V1_FIELDS
from dlctl.dialects.kubeflow.mpi_v2beta1.spec_authors import AuthoredMeta, SpecAuthors
from dlctl.errors import quoted

V1: Final = "v1"
V2BETA1: Final = "v2beta1"
V1ALPHA1: Final = "v1alpha1"
VERSION_ANNOTATION: Final = "dlctl.dev/mpijob-version"
_CHOICES: Final = {V1: BY_SHAPE, V2BETA1: VersionChoice(V2BETA1)}
_RECORDS: Final = {**_CHOICES, V1ALPHA1: BY_SHAPE}
_V1_RESTART_POLICIES: Final = ("Always", "ExitCode")
_VERSION_BY_CONTROLLER: Final = {TRAINING_OPERATOR: V1, MPI_OPERATOR: V2BETA1}


class _OwnStatus(msgspec.Struct):
    version: str = ""


class _Status(msgspec.Struct):
    dlctl: _OwnStatus | None = None


_decode_status: Final = msgspec.json.Decoder(_Status | None).decode


def choose_version(obj: JobObject, spec: Any) -> VersionChoice:
    """Return the version of an MPIJob, or why it is unknown."""
    if (recorded := _RECORDS.get(_recorded_version(obj.status))) is not None:
        return recorded
    if (given := (obj.metadata.annotations or {}).get(VERSION_ANNOTATION)) is not None:
        return _CHOICES.get(given) or VersionChoice("", _unknown_annotation(given))
    authors = _authors(obj)
    if authors is not None and authors.replica_specs == {V2BETA1}:
        return _CHOICES[V2BETA1]
    has_specs = isinstance(spec, Mapping) and "mpiReplicaSpecs" in spec
    if not has_specs and authors is not None and authors.replica_specs == {V1ALPHA1}:
        # The missing field belongs to the version of the manifest.
        return VersionChoice(V1ALPHA1)
    if not has_specs or FORM_FIELD not in spec:
        return BY_SHAPE
    if authors is None:
        return _CHOICES[V2BETA1]
    if (
        authors.replica_specs
        and V2BETA1 not in authors.replica_specs
        and authors.form_field <= {V2BETA1}
    ):
        # A webhook of v2beta1, such as Kueue's, or a later patch of that version added the field.
        return BY_SHAPE
    hints = set(_hints(spec))
    return _CHOICES[hints.pop()] if len(hints) == 1 else VersionChoice("", _problem(obj, authors))


def _recorded_version(status: msgspec.Raw) -> str:
    try:
        decoded = _decode_status(status)
    except msgspec.DecodeError:
        return ""
    return decoded.dlctl.version if decoded and decoded.dlctl else ""


def _authors(obj: JobObject) -> SpecAuthors | None:
    """Return the authors of a spec; None if they are unknown."""
    if isinstance(obj.metadata, AuthoredMeta) and obj.metadata.authors:
        return obj.metadata.authors
    version = obj.api_version.rpartition("/")[2]
    if obj.metadata.uid and version != V2BETA1:
        return None
    # A manifest: its request will have the version that it says.
    return SpecAuthors(frozenset([version]), frozenset([version]))


def _hints(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the versions that alone have a field of the spec, or its value."""
    own = (name for name in DEFAULTS if name != "slotsPerWorker")
    if any(spec.get(name, DEFAULTS[name]) != DEFAULTS[name] for name in own):
        yield V2BETA1
    if any(name in spec for name in V1_FIELDS):
        yield V1
    policy = spec.get("runPolicy")
    controller = policy.get("managedBy") if isinstance(policy, Mapping) else None
    if controller in _VERSION_BY_CONTROLLER:
        yield _VERSION_BY_CONTROLLER[controller]
    if any(policy in _V1_RESTART_POLICIES for policy in _restart_policies(spec)):
        yield V1


def _restart_policies(spec: Mapping[str, Any]) -> Sequence[Any]:
    entries = spec["mpiReplicaSpecs"]
    values = entries.values() if isinstance(entries, Mapping) else ()
    return [each.get("restartPolicy") for each in values if isinstance(each, Mapping)]


def _unknown_annotation(given: str) -> str:
    return (
        f"metadata.annotations[{VERSION_ANNOTATION}] is {quoted(given)}, but must be {V1} or "
        f"{V2BETA1}"
    )


def _problem(obj: JobObject, authors: SpecAuthors) -> str:
    written = " and ".join(sorted(authors.replica_specs)) or "parts"
    what = f"the spec was written as {written}, but has {FORM_FIELD}, as jobs of {V2BETA1} have"
    if not obj.metadata.uid:
        fields = f"the fields that only {V2BETA1} has"
        return f"{what}: write apiVersion kubeflow.org/{V2BETA1}, or remove {fields}"
    return (
        f"{what}: say which version is meant, {V1} or {V2BETA1}: "
        f"kubectl annotate mpijob {obj.metadata.name} {VERSION_ANNOTATION}={V2BETA1}"
    )
