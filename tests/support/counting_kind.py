"""A kind of jobs that records what it decodes."""

import attrs

from dlctl.api.objects.jobs import JobObject
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind


@attrs.frozen
class CountingKind(Kind):
    """A kind with the resource versions of the objects it has decoded."""

    decoded_versions: list[str] = attrs.field(factory=list)

    def decode(self, obj: JobObject) -> DecodedObject:
        self.decoded_versions.append(obj.metadata.resource_version)
        return super().decode(obj)


def counting(kind: Kind) -> CountingKind:
    return CountingKind(**{field.name: getattr(kind, field.name) for field in attrs.fields(Kind)})
