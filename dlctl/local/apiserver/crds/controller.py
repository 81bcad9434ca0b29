"""Serves custom resources according to their CRDs.

A CRD is served as soon as it is stored, if its names are free; deleting it deletes its objects
first. Conversion changes only the apiVersion.
"""

from collections.abc import Iterable, Set
from typing import Final, Self

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, ObjectKey, Resource
from dlctl.clock import timestamp
from dlctl.local.apiserver.builtins.strategies import BuiltinStrategy
from dlctl.local.apiserver.crds.conditions import condition, updated_status, with_condition
from dlctl.local.apiserver.crds.custom_strategy import CustomStrategy
from dlctl.local.apiserver.crds.validation import crd_errors, crd_update_errors
from dlctl.local.apiserver.printing.columns import COLUMNS
from dlctl.local.apiserver.request_options import DeleteRequestOptions
from dlctl.local.apiserver.resources import Column, ResourceRegistry, ServedResource
from dlctl.local.apiserver.storage import deletion
from dlctl.local.apiserver.storage.objects import Objects
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, StoredObject, table_of
from dlctl.local.conditions import is_condition_true

# Keeps a CRD until its objects are gone. The real server adds it when the deletion begins.
_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"


@attrs.frozen
class _AcceptedNames:
    """The names in a group that a CRD has, so that others cannot."""

    group: str
    plurals: Set[str]
    kinds: Set[str]

    @classmethod
    def of(cls, crd: JSON) -> Self:
        names = crd["status"].get("acceptedNames", {})
        plurals = {names.get("plural"), names.get("singular"), *names.get("shortNames", ())}
        kinds = {names.get("kind"), names.get("listKind")}
        return cls(crd["spec"]["group"], plurals - {"", None}, kinds - {"", None})


@attrs.define(eq=False)
class CRDController:
    """Keeps the registry and the conditions of CRDs in sync with the storage.

    :meth:`attach` once; from then on it reacts to the changes of the storage, within each write.
    """

    objects: Objects
    registry: ResourceRegistry
    # The versions of each CRD that are in the registry.
    _served: dict[str, list[ServedResource]] = attrs.field(factory=dict)
    # By the name of the CRD.
    _accepted: dict[str, _AcceptedNames] = attrs.field(factory=dict)

    def attach(self) -> None:
        self.registry.add(
            ServedResource(
                resource=CRDS,
                singular="customresourcedefinition",
                strategy=BuiltinStrategy(
                    CRDS,
                    default=_default_definition,
                    default_update=_add_stored_version,
                    errors=crd_errors,
                    update_errors=crd_update_errors,
                    default_status=_default_status,
                ),
                short_names=("crd", "crds"),
                categories=("api-extensions",),
                has_status=True,
                columns=COLUMNS[CRDS.group_resource],
            )
        )
        self.objects.prepare_for_create[CRDS.group_resource] = _prepare_for_create
        self.objects.storage.observers.append(self._on_change)

    def _on_change(self, change: StorageEvent) -> None:
        if change.table == table_of(CRDS):
            if change.new is None:
                self._unserve(change.key.name)
                self._accepted.pop(change.key.name, None)
                self._recheck_names()
            else:
                self._reconcile(change.new)
        elif change.new is None:
            self._remove_if_empty(change.table)

    def _reconcile(self, stored: StoredObject) -> None:
        """Bring conditions, registry and objects of one CRD to their desired state."""
        current = self.objects.storage.get(CRDS, stored.key)
        if current is None:
            return
        crd = current.decoded(CRDS)
        if crd["metadata"].get("deletionTimestamp"):
            self._terminate(crd, current)
            return
        now = timestamp(self.objects.clock.now())
        done = {**crd, "status": updated_status(crd, self._taken_names(crd), now)}
        if done["status"] != crd["status"]:
            # The observer is called again for this write, and does the rest.
            self.objects.storage.update(CRDS, current, done)
            return
        self._accepted[stored.key.name] = _AcceptedNames.of(crd)
        if is_condition_true(done["status"], "Established"):
            self._serve(done)

    def _serve(self, crd: JSON) -> None:
        versions = list(_versions(crd, self.objects.storage.revision))
        name = crd["metadata"]["name"]
        if versions == self._served.get(name):
            return
        self._unserve(name)
        self._served[name] = versions
        for served in versions:
            self.registry.add(served)

    def _unserve(self, name: str) -> None:
        for served in self._served.pop(name, ()):
            self.registry.remove(served.resource)
            # They would go on in the former schema.
            self.objects.storage.end_watches(served.resource)

    def _recheck_names(self) -> None:
        # Another CRD may be waiting for a name that has become free.
        for stored in self.objects.storage.objects(CRDS):
            self._reconcile(stored)

    def _taken_names(self, crd: JSON) -> tuple[set[str], set[str]]:
        """Return the resource names and kinds of the group that other CRDs have."""
        plurals, kinds = set[str](), set[str]()
        for name, accepted in self._accepted.items():
            if name != crd["metadata"]["name"] and accepted.group == crd["spec"]["group"]:
                plurals |= accepted.plurals
                kinds |= accepted.kinds
        return plurals, kinds

    def _terminate(self, crd: JSON, stored: StoredObject) -> None:
        if not is_condition_true(crd["status"], "Terminating"):
            now = timestamp(self.objects.clock.now())
            terminating = condition(
                "Terminating",
                True,
                "InstanceDeletionInProgress",
                "CustomResource deletion is in progress",
                now,
            )
            conditions = with_condition(crd["status"].get("conditions", []), terminating)
            marked = {**crd, "status": crd["status"] | {"conditions": conditions}}
            self.objects.storage.update(CRDS, stored, marked)
        for served in self._served.get(stored.key.name, ())[:1]:
            for instance in self.objects.storage.objects(served.resource):
                if not instance.meta.deletion_timestamp:
                    deletion.delete(self.objects, served, instance.key, DeleteRequestOptions())
        spec = crd["spec"]
        self._remove_if_empty((spec["group"], spec["names"]["plural"]))

    def _remove_if_empty(self, table: tuple[str, str]) -> None:
        """Remove a CRD that is being deleted once it has no objects left."""
        group, plural = table
        storage = self.objects.storage
        stored = storage.get(CRDS, ObjectKey("", f"{plural}.{group}"))
        if stored is None or not stored.meta.deletion_timestamp:
            return
        if storage.objects(Resource(group, "", plural, "")):
            return
        crd = stored.decoded(CRDS)
        left = [name for name in crd["metadata"].get("finalizers", []) if name != _CLEANUP]
        if left:
            meta = {**crd["metadata"], "finalizers": left}
            if left != crd["metadata"]["finalizers"]:
                storage.update(CRDS, stored, {**crd, "metadata": meta})
        else:
            storage.remove(CRDS, stored)


def _default_definition(crd: JSON) -> None:
    spec = crd.setdefault("spec", {})
    names = spec.setdefault("names", {})
    names.setdefault("singular", names.get("kind", "").lower())
    if names.get("kind"):
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    if spec.get("preserveUnknownFields") is False:
        del spec["preserveUnknownFields"]


def _default_status(crd: JSON) -> None:
    crd.setdefault("status", {})


def _prepare_for_create(crd: JSON) -> JSON:
    """Return a new CRD with its status, and with the finalizer that keeps it."""
    meta = crd["metadata"]
    status = {
        "conditions": [],
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": _storage_versions(crd),
    }
    finalizers = [*meta.get("finalizers", ()), _CLEANUP]
    return {**crd, "metadata": {**meta, "finalizers": finalizers}, "status": status}


def _add_stored_version(_old: JSON, crd: JSON) -> None:
    status = crd.setdefault("status", {})
    known = status.get("storedVersions", [])
    new = [name for name in _storage_versions(crd) if name not in known]
    status["storedVersions"] = [*known, *new]


def _storage_versions(crd: JSON) -> list[str]:
    """Return the names of the versions that objects are stored in: one, if the CRD is valid."""
    versions = crd.get("spec", {}).get("versions", ())
    return [each.get("name", "") for each in versions if each.get("storage")]


def _versions(crd: JSON, revision: int) -> Iterable[ServedResource]:
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    schemas = {each["name"]: each["schema"]["openAPIV3Schema"] for each in spec["versions"]}
    (stored,) = _storage_versions(crd)
    for version in spec["versions"]:
        if not version["served"]:
            continue
        resource = Resource(
            spec["group"],
            version["name"],
            names["plural"],
            names["kind"],
            namespaced=spec["scope"] == "Namespaced",
        )
        subresources = version.get("subresources", {})
        schema = schemas[version["name"]]
        has_status = "status" in subresources
        strategy = CustomStrategy.of(
            resource,
            schema,
            storage_schema=schemas[stored],
            has_status=has_status,
            scale_paths=subresources.get("scale"),
        )
        yield ServedResource(
            resource=resource,
            singular=names["singular"],
            strategy=strategy,
            as_read=strategy.as_read,
            schema_revision=revision,
            short_names=tuple(names.get("shortNames", ())),
            categories=tuple(names.get("categories", ())),
            has_status=has_status,
            scale=subresources.get("scale"),
            columns=tuple(_column(each) for each in version.get("additionalPrinterColumns", ())),
            openapi=schema,
            selectable_fields=tuple(
                each["jsonPath"].removeprefix(".") for each in version.get("selectableFields", ())
            ),
        )


def _column(wire: JSON) -> Column:
    described = f"Custom resource definition column (in JSONPath format): {wire['jsonPath']}"
    return Column(
        name=wire["name"],
        path=wire["jsonPath"],
        type=wire["type"],
        priority=wire.get("priority", 0),
        format=wire.get("format", ""),
        description=wire.get("description") or described,
    )
