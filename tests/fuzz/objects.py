"""Objects of each kind and version: most of what is in them is right, and some of it hostile."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from dlctl.api.defaults import VOLCANO, JobDefaults
from dlctl.api.meta import Resource
from dlctl.dialects.crds import definitions
from dlctl.dialects.kinds import Kind, kinds
from dlctl.dialects.replica_map import ReplicaMap
from dlctl.frameworks.elastic.job import TrainingJob
from dlctl.frameworks.kubeflow.job import KubeflowJob
from dlctl.frameworks.registry import installed
from tests.fuzz import hostile
from tests.fuzz.schemas import Words, valid

JSON = dict[str, Any]
UID: Final = "11111111-1111-4111-8111-111111111111"
# With gangs, so that what jobs say of theirs is read and rendered, too.
KINDS: Final = kinds(installed(), JobDefaults(gang_scheduler=VOLCANO))
# More than these hide each other.
_MOST_HITS: Final = 3


@attrs.frozen
class Form:
    """One version of one kind, as its CRD defines it; a scaler's kind is that of its jobs."""

    kind: Kind
    group: str
    version: str
    name: str
    plural: str
    schema: JSON

    @property
    def scaler(self) -> bool:
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
    def words(self) -> Words:
        dialect = self.kind.dialects.get(self.version) or next(iter(self.kind.dialects.values()))
        framework = dialect.framework
        mapped = isinstance(dialect, ReplicaMap)
        spelt = {type_: type_.upper() for type_ in framework.replica_types}
        if framework is TrainingJob:
            spelt = {type_: type_ for type_ in framework.replica_types}
        elif mapped and issubclass(framework, KubeflowJob):
            spelt = {type_: framework.spelling(type_) for type_ in framework.replica_types}
            if "chief" in spelt:
                # TFJob's Chief and Master exclude each other.
                del spelt["master"]
        alone = {framework.chief_type or framework.replica_types[0], *framework.singletons}
        several = len(spelt) == 1 or framework.replica_types[0] == "ps"
        return Words(
            replica_types=list(spelt.values()),
            needed=[spelt[type_] for type_ in alone],
            alone=[] if several else [spelt[type_] for type_ in alone],
            container=framework.container_name(),
            leaves_out=self._leaves_out(mapped=mapped),
        )

    def _leaves_out(self, *, mapped: bool) -> tuple[str, ...]:
        """Return the fields of the other form, which a kind of both has in each schema."""
        fields = self.schema["properties"]["spec"].get("properties", {})
        if "replicaSpecs" not in fields:
            return ()
        return ("replicaSpecs",) if mapped else tuple(n for n in fields if "ReplicaSpecs" in n)


def forms() -> Iterator[Form]:
    """Yield all that users may create, in all its versions."""
    for kind in KINDS:
        for crd in definitions(kind):
            spec = crd["spec"]
            for version in spec["versions"]:
                names = spec["names"]
                yield Form(
                    kind,
                    spec["group"],
                    version["name"],
                    names["kind"],
                    names["plural"],
                    version["schema"]["openAPIV3Schema"],
                )


@st.composite
def objects(draw: Any, form: Form, *, status: bool = True) -> JSON:
    """Draw an object as a server may hold it, or without a status, as users may send it."""
    hits = hostile.stored if status else hostile.sent
    properties = form.schema["properties"]
    body: JSON = {"spec": draw(valid(properties["spec"], form.words))}
    if status and draw(st.booleans()):
        body["status"] = draw(valid(properties["status"], form.words))
    for _ in range(draw(st.integers(0, _MOST_HITS))):
        # The innermost first: there are more of them, and to what matters it is a long way in.
        places = list(_places(body))[::-1]
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        if isinstance(key, str) and draw(st.integers(0, 7)) == 7:
            holder[draw(st.sampled_from(hostile.NAMES))] = holder.pop(key)
        else:
            holder[key] = draw(hits)
    metadata: JSON = {"name": "hostile", "namespace": "default", "uid": UID, "generation": 1}
    metadata["creationTimestamp"] = "2026-01-01T12:00:00Z"
    for field in ("annotations", "labels"):
        if draw(st.integers(0, 3)) == 3:
            metadata[field] = {"a": draw(hostile.texts)}
    return {"apiVersion": form.api_version, "kind": form.name, "metadata": metadata, **body}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all that can be put something else in the place of, the outermost first."""
    found = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, below in list(found):
        yield value, key
        if isinstance(below, Mapping | list):
            yield from _places(below)
