"""Objects that once cost more than they may, or are the densest there are: in every run."""

from typing import Any, Final

import msgspec
import pytest

from dlctl.api.json_types import JSON
from tests.fuzz.costs import run_within_limits
from tests.fuzz.objects import UID, crd_versions

_FORMS: Final = {str(form): form for form in crd_versions()}
_PAIRS: Final = [{"name": "a", "value": "b"}] * 5000
# Nothing takes more memory than lists in lists, and dictionaries with dictionaries.
_DENSE_LISTS: Final = msgspec.Raw(b"[" + b",".join([b"[" * 50 + b"]" * 50] * 1200) + b"]")
_DENSE_OBJECTS: Final = msgspec.Raw(
    b"[" + b",".join([b'{"":' * 50 + b"0" + b"}" * 50] * 480) + b"]"
)
_STARTED: Final = {"conditions": [{"type": "Running", "status": "True"}]}
_BARE: Final = {"phase": "", "reason": "a", "failure": {}, "conditions": [{}]}


def _paddle(container: Any, **more: Any) -> JSON:
    template = {"spec": {"containers": [container]}}
    return {"paddleReplicaSpecs": {"Worker": {"template": template, "replicas": 1}}, **more}


def _bare_list(replicas: int, **limits: Any) -> list[JSON]:
    container = {"name": "tensorflow", "image": "x", "resources": {"limits": limits}}
    template = {"spec": {"containers": [container]}}
    return [{"replicas": replicas, "template": template, "replicaType": "WORKER"}]


_CONTAINER: Final = {"name": "paddle", "image": "x"}
_PADDLE: Final = "PaddleJob.v1.kubeflow.org"
_BARE_MX: Final = "MXJob.v1.mpba.fbk.eu"
_BARE_TF: Final = "TFJob.v1.mpba.fbk.eu"
_SCALE_OUT: Final = "ScaleOut.v1alpha1.kai.alibabacloud.com"
_SCALE_IN: Final = "ScaleIn.v1alpha1.kai.alibabacloud.com"
_VARIABLES: Final[JSON] = {"selector": {"name": "a"}, "toDelete": {"count": 1}, "script": "/a.sh"}
_NO_CONDITIONS: Final[JSON] = {"conditions": [{}] * 20_000}
_MANY_RESTARTS: Final[JSON] = {
    "dlctl": {"restarts": {"worker": [{"replicas": [f"{i} 0 0 0 " for i in range(25_000)]}]}}
}


@pytest.mark.parametrize(
    ("form", "spec", "status"),
    [
        pytest.param(_PADDLE, _paddle(_PAIRS, backoffLimit=_PAIRS), None, id="lists for scalars"),
        pytest.param(
            _PADDLE,
            _paddle({**_CONTAINER, "env": _PAIRS}, backoffLimit=_PAIRS),
            _STARTED,
            id="list for a scalar in a running job",
        ),
        pytest.param(_PADDLE, _paddle({**_CONTAINER, "env": _PAIRS}), None, id="many variables"),
        pytest.param(
            _PADDLE,
            _paddle({**_CONTAINER, "command": ["a"] * 15_000}, backoffLimit="no"),
            _STARTED,
            id="long command in a running job",
        ),
        pytest.param(_PADDLE, _paddle({**_CONTAINER, "env": [_DENSE_LISTS]}), None, id="dense env"),
        pytest.param(_PADDLE, _paddle({**_CONTAINER, "x": _DENSE_LISTS}), None, id="dense lists"),
        pytest.param(
            _PADDLE, _paddle({**_CONTAINER, "x": _DENSE_OBJECTS}), None, id="dense objects"
        ),
        pytest.param(
            _PADDLE,
            _paddle(_CONTAINER, x=_DENSE_OBJECTS, backoffLimit=_DENSE_OBJECTS),
            _STARTED,
            id="dense objects in a running job",
        ),
        pytest.param(_BARE_MX, _PAIRS, _BARE, id="bare list of pairs"),
        pytest.param(_BARE_MX, _DENSE_OBJECTS, None, id="bare list of dense objects"),
        pytest.param(_BARE_TF, _bare_list(10), None, id="bare list"),
        pytest.param(_BARE_TF, _bare_list(1) * 2000, None, id="bare list of many replica types"),
        pytest.param(_BARE_TF, _bare_list(1, memory=1e308), None, id="no sum of amounts"),
        pytest.param(_SCALE_OUT, {"selector": {}}, _NO_CONDITIONS, id="conditions without types"),
        pytest.param(
            _SCALE_IN,
            {**_VARIABLES, "env": [{"name": "A"}] * 35_000},
            None,
            id="many variables of a script",
        ),
        pytest.param(_PADDLE, _paddle(_CONTAINER), _NO_CONDITIONS, id="a job's without types"),
        pytest.param(_PADDLE, _paddle(_CONTAINER), _MANY_RESTARTS, id="restarts of many replicas"),
        # Variables list all replicas, and are too long: known after the plan, made in a thread.
        pytest.param(_BARE_TF, _bare_list(10_000), None, id="too many replicas for a variable"),
    ],
)
def test_object_costs_no_more_than_it_may(form: str, spec: Any, status: JSON | None) -> None:
    version = _FORMS[form]
    metadata = {"name": "hostile", "namespace": "default", "uid": UID, "generation": 1}
    metadata["creationTimestamp"] = "2026-01-01T12:00:00Z"
    body = {"apiVersion": version.api_version, "kind": version.name, "metadata": metadata}
    body |= {"spec": spec} if status is None else {"spec": spec, "status": status}
    # The fuzz tier holds objects to the time itself; this runs beside all other tests.
    run_within_limits(version, msgspec.json.encode(body), measure_memory=True, time_factor=3)
