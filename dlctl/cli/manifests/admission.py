"""Rejections by the API server of jobs, scalers and the pods of jobs, found offline.

Objects are validated by the CRDs that ``dlctl crds`` prints, with the code of the embedded server.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api import quantities
from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, Resource
from dlctl.cli.manifests.job_renderer import job_renderer
from dlctl.cli.manifests.pod_references import templates
from dlctl.cli.manifests.yaml_lines import Path, dotted, parsed
from dlctl.dialects.kind import Kind
from dlctl.dialects.kind_crds import kind_crds
from dlctl.dialects.pods.pod_canonicalization import canonicalize_pod_template
from dlctl.dialects.value_formats import format_value, invalid_reason
from dlctl.errors import InvalidJobError
from dlctl.frameworks.kubeflow.torch_elastic import ELASTIC_POLICY, HORIZONTAL_POD_AUTOSCALERS
from dlctl.local.apiserver.builtins.autoscalers import autoscaler_errors, default_autoscaler
from dlctl.local.apiserver.builtins.pod_defaults import default_pod
from dlctl.local.apiserver.builtins.strategies import BuiltinStrategy
from dlctl.local.apiserver.crds.custom_strategy import UNCHECKED, CustomStrategy
from dlctl.local.apiserver.resources import Strategy
from dlctl.local.apiserver.serialization.typed_decoding import decode_metadata
from dlctl.local.apiserver.status import FieldError, StatusError
from dlctl.local.apiserver.validation import metadata
from dlctl.local.apiserver.validation.pods import pod_errors

# The field that the message of an error of the whole object names.
_NAMED_FIELD_RE: Final = re.compile(r"(?<![\w.])(?:metadata|spec)\b[\w.\[\]-]*")
_WRONG_TYPE: Final = "FieldValueTypeInvalid"
_WRONG_TYPE_RE: Final = re.compile(r"must be of type ([a-z,]+): ")
# The server names the field of a number out of the range of its type in the message alone.
_OUT_OF_RANGE_RE: Final = re.compile(
    r"Checked value must be of type integer .*(32|default).* in (\S+)$"
)
# A rule that reads such a number.
_UNREAD_RE: Final = re.compile("invalid data, expected int, .* evaluating rule: ")
_TYPE_OF_SCHEMA: Final = {
    "string": "str",
    "boolean": "bool",
    "integer": "int64",
    # The only numbers that are refused are fractions.
    "integer,string": "str",
}
_AUTOSCALERS: Final = BuiltinStrategy(
    HORIZONTAL_POD_AUTOSCALERS, default=default_autoscaler, errors=autoscaler_errors
)
_PODS: Final = BuiltinStrategy(PODS, default=default_pod, errors=pod_errors)


@attrs.frozen
class AdmissionRejection:
    """One reason why an object is not created; ``message`` names the field."""

    path: Path
    message: str


@attrs.frozen
class Admission:
    """Validates new objects; the schema of each version is compiled once."""

    _strategies: dict[Resource, CustomStrategy] = attrs.field(factory=dict)

    def rejections(self, kind: Kind, resource: Resource, obj: JSON) -> list[AdmissionRejection]:
        """Return why a job, or a scaler of jobs of the kind, would not be created."""
        strategy, sent = self._strategy(kind, resource), _sent(obj)
        unknown = [_unknown_field(field) for field in strategy.unknown_fields(sent)]
        errors = _create_errors(strategy, resource, _sent(obj))
        # In a value of the wrong type, all fields are unknown.
        mistyped = [parsed(each.field) for each in errors if each.reason == _WRONG_TYPE]
        unknown = [one for one in unknown if not any(_is_below(one.path, at) for at in mistyped)]
        if unknown:
            errors = [error for error in errors if _is_certain(error, sent)]
        return [*unknown, *_without_repetitions(errors, sent)]

    def wrong_values(self, kind: Kind, obj: JSON) -> Iterator[AdmissionRejection]:
        """Yield which values of a job are wrong, whatever misspelt fields leave out."""
        sent = _sent(obj)
        errors = _create_errors(self._strategy(kind, kind.resource), kind.resource, _sent(obj))
        return _without_repetitions([each for each in errors if _is_certain(each, sent)], sent)

    def child_rejections(self, kind: Kind, manifest: JSON) -> Iterator[AdmissionRejection]:
        """Yield why children of a valid job would not be created: its autoscaler, and its pods.

        Those of pods are yielded once for each pod template. The manifest has a name and a
        namespace.
        """
        renderer = job_renderer(kind, manifest)
        # All replicas of a type have the same pods but for names.
        of_type = {replica.type: replica for replica in renderer.job.replicas}
        try:
            pods = [renderer.pod(replica) for replica in of_type.values()]
            dependents = list(renderer.dependents(()))
        except InvalidJobError as invalid:
            yield AdmissionRejection(parsed(invalid.field), str(invalid))
            return
        for dependent in dependents:
            if dependent.resource == HORIZONTAL_POD_AUTOSCALERS:
                yield from _autoscaler_rejections(renderer.dependent(dependent))
        found = [(pod, error) for pod in pods for error in _create_errors(_PODS, PODS, pod)]
        wrong = {error.message for _, error in found}
        placed = set[str]()
        for path, error in _template_errors(manifest) if found else ():
            # The controller replaces some fields of templates: only what stays in the pods counts.
            if error.message in wrong:
                placed.add(error.message)
                yield _rejection(error, path)
        for pod, error in found:
            if error.message not in placed:
                placed.add(error.message)
                message = f"{error.field}: {error.message}"
                yield AdmissionRejection(
                    ("spec",), f"spec: pod {pod['metadata']['name']}: {message}"
                )

    def _strategy(self, kind: Kind, resource: Resource) -> CustomStrategy:
        if resource not in self._strategies:
            schema = _schema(kind, resource)
            self._strategies[resource] = CustomStrategy.of(
                resource, schema, storage_schema=schema, has_status=True
            )
        return self._strategies[resource]


def _autoscaler_rejections(scaler: JSON) -> Iterator[AdmissionRejection]:
    errors = _create_errors(_AUTOSCALERS, HORIZONTAL_POD_AUTOSCALERS, scaler)
    # Scaling to zero depends on a feature gate of the cluster.
    for error in (each for each in errors if each.field != "spec.minReplicas"):
        field = error.field.replace("spec.", f"{ELASTIC_POLICY}.", 1)
        yield _rejection(attrs.evolve(error, field=field), ())


def _template_errors(manifest: Mapping[str, Any]) -> Iterator[tuple[Path, FieldError]]:
    for (*path, _), _ in templates(manifest):
        template: Any = manifest
        for step in path:
            template = template[step]
        template = canonicalize_pod_template(template, "")
        meta = {**template.get("metadata", {}), "name": "template", "namespace": "default"}
        for error in _create_errors(_PODS, PODS, {"metadata": meta, "spec": template["spec"]}):
            yield tuple(path), error


def _schema(kind: Kind, resource: Resource) -> JSON:
    crd = next(c for c in kind_crds(kind) if c["metadata"]["name"] == resource.group_resource)
    version = next(v for v in crd["spec"]["versions"] if v["name"] == resource.version)
    schema: JSON = version["schema"]["openAPIV3Schema"]
    return schema


def _create_errors(strategy: Strategy, resource: Resource, obj: JSON) -> list[FieldError]:
    errors: list[FieldError] = []
    try:
        decoded = decode_metadata(obj, resource)
        errors += metadata.errors(decoded, resource)
        strategy.admit_create(decoded)
    except StatusError as error:
        causes = (error.details or {}).get("causes")
        if causes is None:
            # A value of a type that cannot be decoded: the message names it.
            return [FieldError("", error.message)]
        errors += [FieldError(**cause) for cause in causes]
    return errors


def _without_repetitions(errors: Sequence[FieldError], obj: JSON) -> Iterator[AdmissionRejection]:
    seen = set[AdmissionRejection]()
    if any(_OUT_OF_RANGE_RE.search(error.message) for error in errors):
        errors = [error for error in errors if _UNREAD_RE.search(error.message) is None]
    errors = list(_with_fields(errors, obj))
    typed = {error.field for error in errors if error.reason == _WRONG_TYPE}
    for error in errors:
        # A value of the wrong type also breaks the other rules of its field.
        repeats = error.field in typed and error.reason != _WRONG_TYPE
        if repeats or error == UNCHECKED:
            continue
        rejection = _rejection(_with_fix(error, _value_of(error, obj)), ())
        if rejection not in seen:
            seen.add(rejection)
            yield rejection


def _with_fields(errors: Sequence[FieldError], obj: JSON) -> Iterator[FieldError]:
    """Yield errors of numbers out of range with their field, unless another error has it."""
    named = {error.field for error in errors}
    for error in errors:
        found = _OUT_OF_RANGE_RE.search(error.message)
        if found is None:
            yield error
        elif found[2] not in named:
            at = attrs.evolve(error, field=found[2])
            type_ = "int32" if found[1] == "32" else "int64"
            yield attrs.evolve(at, message=invalid_reason(_value_of(at, obj), type_))


def _sent(obj: JSON) -> JSON:
    """Return a copy as a client sends it, for defaults to be filled in."""
    return msgspec.json.decode(msgspec.json.encode(obj), type=JSON)


def _value_of(error: FieldError, obj: JSON) -> Any:
    """Return the value that an error is about, or the object in which it is missing."""
    value: Any = obj
    steps = parsed(error.field)
    for index, step in enumerate(steps):
        is_there = step in value if isinstance(value, dict) else isinstance(value, list)
        if not is_there:
            # Names of resources have dots.
            rest = ".".join(map(str, steps[index:]))
            return value.get(rest, value) if isinstance(value, dict) else value
        value = value[step]
    return value


def _is_certain(error: FieldError, obj: JSON) -> bool:
    """Return whether a value is wrong whatever misspelt fields leave out, as in objects."""
    return error.reason == _WRONG_TYPE or _is_scalar(_value_of(error, obj))


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _with_fix(error: FieldError, value: Any) -> FieldError:
    """Return the error of a wrong type with the value and the fix, which servers do not name."""
    found = _WRONG_TYPE_RE.search(error.message) if error.reason == _WRONG_TYPE else None
    type_ = _TYPE_OF_SCHEMA.get(found[1], "") if found else ""
    if quantities.PATTERN in error.message:
        type_ = "quantity"
    reason = invalid_reason(value, type_) if found or _is_scalar(value) else ""
    if found and found[1] == "object":
        reason = f"must be an object, not {format_value(value)}"
    elif found and found[1] == "array":
        reason = f"must be a list, not {format_value(value)}: begin each item with a dash"
    return attrs.evolve(error, message=reason or error.message)


def _is_below(path: Path, other: Path) -> bool:
    return path[: len(other)] == other


def _unknown_field(field: str) -> AdmissionRejection:
    path = parsed(field)
    return AdmissionRejection(path, f"{field}: unknown field {path[-1]!r}")


def _rejection(error: FieldError, parent: Path) -> AdmissionRejection:
    field, message = error.field, error.message
    if not field.startswith(("metadata", "spec")):
        named = _NAMED_FIELD_RE.search(message)
        field, message = named[0] if named else "", message.removeprefix("Invalid value: ")
    message = message.replace(f"{field} in body ", "", 1)
    path = (*parent, *parsed(field))
    shown = dotted(parent) + (f".{field}" if parent and field else field)
    if shown and not message.startswith(shown):
        message = f"{shown}: {message}"
    return AdmissionRejection(path, message)
