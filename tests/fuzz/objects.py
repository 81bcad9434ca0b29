"""Objects of each kind and version: mostly valid, partly hostile."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from dlctl.api.defaults import JobDefaults
from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.api.objects.pod_groups import VOLCANO
from dlctl.dialects.dialect import Dialect
from dlctl.dialects.kind import Kind
from dlctl.dialects.kind_crds import kind_crds
from dlctl.dialects.kinds import served_kinds
from dlctl.dialects.kubeflow.mpi_v1alpha1 import fields as mpi_v1alpha1
from dlctl.dialects.kubeflow.mpi_v1alpha1.dialect import MPIJobV1alpha1
from dlctl.dialects.kubeflow.replica_map import ReplicaMap
from dlctl.frameworks.horovod.job import TrainingJob
from dlctl.frameworks.registry import load_frameworks
from tests.fuzz import hostile_values
from tests.fuzz.schemas import Vocabulary, valid_values

UID: Final = "11111111-1111-4111-8111-111111111111"
# With gang scheduling, so that its policy is read and rendered, too.
KINDS: Final = served_kinds(load_frameworks().frameworks, JobDefaults(gang_scheduler_name=VOLCANO))
# More of them would hide each other.
_MAX_HOSTILE_VALUES: Final = 3


@attrs.frozen
class CrdVersion:
    """One version of one kind, as its CRD defines it; a scaler's kind is that of its jobs."""

    kind: Kind
    group: str
    version: str
    name: str
    plural: str
    schema: JSON

    @property
    def is_scaler(self) -> bool:
        return self.name != self.kind.resource.kind

    @property
    def resource(self) -> Resource:
        return Resource(self.group, self.version, self.plural, self.name)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def __str__(self) -> str:
        return f"{self.name}.{self.version}.{self.group}"

    @property
    def vocabulary(self) -> Vocabulary:
        dialect = self._dialect
        framework = dialect.framework
        spelt = {type_: type_.upper() for type_ in framework.replica_types}
        if framework is TrainingJob:
            spelt = {type_: type_ for type_ in framework.replica_types}
        elif isinstance(dialect, ReplicaMap):
            spelt = {type_: dialect.kind.type_name(type_) for type_ in framework.replica_types}
            if "chief" in spelt:
                # TFJob's Chief and Master exclude each other.
                del spelt["master"]
        alone = {framework.chief_type or framework.replica_types[0], *framework.singletons}
        several = len(spelt) == 1 or framework.replica_types[0] == "ps"
        return Vocabulary(
            replica_types=list(spelt.values()),
            required_types=[spelt[type_] for type_ in alone],
            singleton_types=[] if several else [spelt[type_] for type_ in alone],
            container=framework.container_name(),
        )

    @property
    def spec_schema(self) -> JSON:
        """Return the schema of a spec, without what only another form of the kind may have."""
        schema: JSON = self.schema["properties"]["spec"]
        fields = schema.get("properties", {})
        excluded = self._excluded_fields(fields)
        own = {name: each for name, each in fields.items() if name not in excluded}
        return {**schema, "properties": own} if excluded else schema

    def _excluded_fields(self, fields: Collection[str]) -> Collection[str]:
        """Return the fields of the other form, which a kind of both has in each schema."""
        maps = [name for name in fields if name.endswith("ReplicaSpecs")]
        if isinstance(self._dialect, MPIJobV1alpha1):
            return maps
        if self.name == "MPIJob":
            return mpi_v1alpha1.FIELDS
        if "replicaSpecs" in fields:
            return ["replicaSpecs"] if isinstance(self._dialect, ReplicaMap) else maps
        return ()

    @property
    def _dialect(self) -> Dialect:
        return self.kind.dialects.get(self.version) or next(iter(self.kind.dialects.values()))


def crd_versions() -> Iterator[CrdVersion]:
    """Yield all that users may create, in all its versions."""
    for kind in KINDS:
        for crd in kind_crds(kind):
            spec = crd["spec"]
            for version in spec["versions"]:
                names = spec["names"]
                yield CrdVersion(
                    kind,
                    spec["group"],
                    version["name"],
                    names["kind"],
                    names["plural"],
                    version["schema"]["openAPIV3Schema"],
                )


@st.composite
def objects(draw: Any, form: CrdVersion, *, status: bool = True) -> JSON:
    """Draw an object as stored by a server, or without a status, as sent by users."""
    hits = hostile_values.storable if status else hostile_values.sendable
    properties = form.schema["properties"]
    body: JSON = {"spec": draw(valid_values(form.spec_schema, form.vocabulary))}
    if status and draw(st.booleans()):
        body["status"] = draw(valid_values(properties["status"], form.vocabulary))
    for _ in range(draw(st.integers(0, _MAX_HOSTILE_VALUES))):
        # Inner values first: there are more of them, and most relevant ones are nested.
        places = list(_places(body))[::-1]
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        if isinstance(key, str) and draw(st.integers(0, 7)) == 7:
            holder[draw(st.sampled_from(hostile_values.NAMES))] = holder.pop(key)
        else:
            holder[key] = draw(hits)
    metadata: JSON = {"name": "hostile", "namespace": "default", "uid": UID, "generation": 1}
    metadata["creationTimestamp"] = "2026-01-01T12:00:00Z"
    for field in ("annotations", "labels"):
        if draw(st.integers(0, 3)) == 3:
            metadata[field] = {"a": draw(hostile_values.texts)}
    return {"apiVersion": form.api_version, "kind": form.name, "metadata": metadata, **body}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all replaceable values, the outermost first."""
    found = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, below in list(found):
        yield value, key
        if isinstance(below, Mapping | list):
            yield from _places(below)
