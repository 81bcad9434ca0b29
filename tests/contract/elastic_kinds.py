"""The kinds of et-operator as they are installed, and where they are served."""

import json

from dlctl.api.json_types import JSON
from dlctl.dialects.kind_crds import kind_crds
from tests.builders import kind_of
from tests.contract.api import Api
from tests.dialects.et_operator.manifests import GROUP

DEFINITIONS: dict[str, JSON] = {
    # As installed: serialized, so that no part is shared.
    wire["spec"]["names"]["kind"]: json.loads(json.dumps(wire))
    for wire in kind_crds(kind_of(GROUP, "TrainingJob"))
}


def path(api: Api, wire: JSON, *rest: str) -> str:
    plural = f"{wire['kind'].lower()}s"
    return api.path(plural, "/".join(rest), group=GROUP)
