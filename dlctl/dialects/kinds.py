"""The kinds dlctl serves: each is a framework, and the dialects its API group spells it in.

One table; a framework of another package gets dl-operator's group and form without a line here.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs
import msgspec

from dlctl.api.job import Job, JobObject
from dlctl.api.meta import Resource
from dlctl.api.status import JobStatus
from dlctl.dialects.bare_list import MPBA_V1, MPBA_V1_MXNET
from dlctl.dialects.dialect import Dialect
from dlctl.dialects.replica_list import FIORAVANZO_V1ALPHA1, KUBEFLOW_V1ALPHA1
from dlctl.errors import ConfigError, InvalidJobError
from dlctl.frameworks.dljob import DLJob

# The dialects of a group and job type by version; the first version is the stored one.
_SPOKEN: Final[Mapping[tuple[str, str], Mapping[str, Dialect]]] = {
    ("kubeflow.org", "MXJob"): {"v1alpha1": KUBEFLOW_V1ALPHA1},
    ("fioravanzo.org", "MXJob"): {"v1alpha1": FIORAVANZO_V1ALPHA1},
    ("mpba.fbk.eu", "MXJob"): {"v1": MPBA_V1_MXNET},
}
_OPEN_GROUP: Final = "mpba.fbk.eu"


@attrs.frozen
class Kind:
    """One custom resource: what it is called, what trains, and how it is spelt by version.

    All versions of a kind are read by the shape of the spec, since the API server stores one
    version and converts between them by name only.
    """

    resource: Resource
    framework: type[DLJob]
    dialects: Mapping[str, Dialect]

    @property
    def singular(self) -> str:
        return self.resource.kind.lower()

    def dialect_of(self, obj: JobObject) -> Dialect:
        """Return the dialect that a job is written in, else that of the stored version."""
        stored, *others = self.dialects.values()
        # Where there is nothing to choose, the spec need not be decoded; this is asked often.
        if not others:
            return stored
        try:
            spec = msgspec.json.decode(obj.spec)
        except msgspec.DecodeError:
            return stored
        return next((d for d in (stored, *others) if d.recognises(spec)), stored)

    def read(self, obj: JobObject) -> Job:
        """Read a job of this kind.

        :raises InvalidJobError: naming the field and the fix.
        """
        dialect = self.dialect_of(obj)
        try:
            return dialect.read(obj, self.resource, self.framework)
        except msgspec.DecodeError as error:
            raise InvalidJobError(f"cannot be read: {error}", field="spec") from error

    def read_status(self, obj: JobObject) -> JobStatus:
        return self.dialect_of(obj).read_status(obj)


def kinds(frameworks: Mapping[str, type[DLJob]]) -> list[Kind]:
    """Return the kinds of the given frameworks, by job type.

    :raises ConfigError: if two kinds would be served under one name.
    """
    spoken = [
        _kind(group, frameworks[job_type], dialects)
        for (group, job_type), dialects in _SPOKEN.items()
        if job_type in frameworks
    ]
    taken = {kind.resource.qualified for kind in spoken}
    for framework in frameworks.values():
        kind = _kind(_OPEN_GROUP, framework, {"v1": MPBA_V1})
        if (_OPEN_GROUP, framework.job_type) in _SPOKEN:
            continue
        if kind.resource.qualified in taken:
            raise ConfigError(
                f"{framework.__module__}.{framework.__qualname__} would be served as "
                f"{kind.resource.qualified}, which is taken: choose another job_type"
            )
        taken.add(kind.resource.qualified)
        spoken.append(kind)
    return spoken


def by_api_version(kinds: Iterable[Kind], api_version: str, name: str) -> Kind | None:
    """Return the kind of a manifest's ``apiVersion`` and ``kind``, whichever version it is in."""
    group, _, version = api_version.rpartition("/")
    return next(
        (
            kind
            for kind in kinds
            if (kind.resource.group, kind.resource.kind) == (group, name)
            and version in kind.dialects
        ),
        None,
    )


def _kind(group: str, framework: type[DLJob], dialects: Mapping[str, Dialect]) -> Kind:
    stored = next(iter(dialects))
    plural = f"{framework.job_type.lower()}s"
    return Kind(Resource(group, stored, plural, framework.job_type), framework, dialects)
