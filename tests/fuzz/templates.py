"""The schema of pod templates, for the parts that a CRD leaves open."""

from typing import Final

from dlctl.api.json_types import JSON

TEXT: Final[JSON] = {"type": "string"}
NUMBER: Final[JSON] = {"type": "integer", "minimum": 0, "maximum": 100_000}
QUANTITY: Final[JSON] = {"x-kubernetes-int-or-string": True}
TEXTS: Final[JSON] = {"type": "object", "additionalProperties": TEXT}


def _object(*required: str, **properties: JSON) -> JSON:
    return {"type": "object", "properties": properties, "required": list(required)}


def _list(item: JSON) -> JSON:
    return {"type": "array", "items": item}


_QUANTITIES: Final = {"type": "object", "additionalProperties": QUANTITY}
_PORT: Final = _object("containerPort", name=TEXT, containerPort={"type": "integer"}, protocol=TEXT)
_SOURCE: Final = _object(fieldRef=_object("fieldPath", fieldPath=TEXT))
_PROBE: Final = _object(
    exec=_object(command=_list(TEXT)), httpGet=_object("port", path=TEXT, port=QUANTITY)
)
_CONTAINER: Final = _object(
    "name",
    "image",
    name=TEXT,
    image=TEXT,
    command=_list(TEXT),
    args=_list(TEXT),
    env=_list(_object("name", name=TEXT, value=TEXT, valueFrom=_SOURCE)),
    ports=_list(_PORT),
    resources=_object(limits=_QUANTITIES, requests=_QUANTITIES),
    volumeMounts=_list(_object("name", "mountPath", name=TEXT, mountPath=TEXT)),
    livenessProbe=_PROBE,
    securityContext=_object(runAsUser=NUMBER, privileged={"type": "boolean"}),
)
POD_SPEC: Final = _object(
    "containers",
    containers={**_list(_CONTAINER), "minItems": 1},
    initContainers=_list(_CONTAINER),
    volumes=_list(_object("name", name=TEXT, emptyDir=_object())),
    tolerations=_list(_object(key=TEXT, operator=TEXT, tolerationSeconds=NUMBER)),
    nodeSelector=TEXTS,
    nodeName=TEXT,
    schedulerName=TEXT,
    priorityClassName=TEXT,
    restartPolicy={"type": "string", "enum": ["Always", "OnFailure", "Never"]},
    schedulingGates=_list(_object("name", name=TEXT)),
    hostNetwork={"type": "boolean"},
    terminationGracePeriodSeconds=NUMBER,
    affinity=_object(nodeAffinity=_object()),
    securityContext=_object(runAsUser=NUMBER),
)
POD_TEMPLATE: Final = _object(
    "spec",
    metadata=_object(
        name=TEXT, labels=TEXTS, annotations=TEXTS, finalizers=_list(TEXT), generateName=TEXT
    ),
    spec=POD_SPEC,
)
