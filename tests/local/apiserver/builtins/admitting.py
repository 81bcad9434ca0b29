"""Objects that a built-in kind takes or rejects."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.resources import ResourceRegistry, Strategy
from dlctl.local.apiserver.status import StatusError


def strategy(registry: ResourceRegistry, plural: str, group: str = "") -> Strategy:
    served = registry.find(group, "v1", plural)
    assert served is not None
    return served.strategy


def refusals(strategy: Strategy, obj: JSON) -> list[str]:
    with pytest.raises(StatusError) as error:
        strategy.admit_create(obj)
    assert error.value.code == 422
    assert error.value.details is not None
    return [f"{c['field']}: {c['message']}" for c in error.value.details["causes"]]
