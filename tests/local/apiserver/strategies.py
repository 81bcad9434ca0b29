"""A strategy that accepts everything."""

from dlctl.api.json_types import JSON


class Anything:
    def unknown_fields(self, _obj: JSON) -> list[str]:
        return []

    def admit_create(self, obj: JSON) -> JSON:
        return obj

    def admit_update(self, old: JSON, new: JSON) -> JSON:
        return new

    def admit_status(self, old: JSON, new: JSON) -> JSON:
        return new
