"""The manifests whose rendered children stand in ``tests/golden``, one for each dialect.

``python -m tests.goldens`` writes those files anew; read the difference before it is committed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.builders import bare_job, entry, mxjob, renderer_of

JSON = dict[str, Any]
FOLDER: Final = Path(__file__).parent / "golden"

# Everything a template can say that children must respect: what the user sets, and a sidecar.
_TEMPLATE: Final[JSON] = {
    "metadata": {"labels": {"team": "vision", "job_type": "mine"}, "annotations": {"note": "a"}},
    "spec": {
        "containers": [
            {
                "name": "mxnet",
                "image": "mxnet:1",
                "env": [{"name": "EPOCHS", "value": "3"}, {"name": "DMLC_ROLE", "value": "mine"}],
            },
            {"name": "sidecar", "image": "logs:1"},
        ],
        "restartPolicy": "Always",
        "nodeSelector": {"gpu": "yes"},
    },
}
MANIFESTS: Final[Mapping[str, JSON]] = {
    "kubeflow-v1alpha1": mxjob(
        RuntimeId="ab1c",
        schedulerName="volcano",
        replicaSpecs=[
            entry("SCHEDULER", PsRootPort=9000),
            entry("SERVER"),
            entry("WORKER", template=_TEMPLATE),
        ],
    ),
    "fioravanzo-v1alpha1": mxjob(group="fioravanzo.org", RuntimeId="ab1c", workers=1),
    "mpba-v1-mxjob": bare_job("MXJob", scheduler=1, server=1, worker=1),
    "mpba-v1-tfjob": bare_job("TFJob", ps=1, worker=1),
}


def rendered(name: str) -> list[JSON]:
    """Return the children of a manifest: services first, as they are created."""
    renderer = renderer_of(MANIFESTS[name])
    services = [renderer.service(replica) for replica in renderer.replicas_with_service()]
    return services + [renderer.pod(replica) for replica in renderer.job.replicas]


def written(name: str) -> list[JSON]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


if __name__ == "__main__":
    for name in MANIFESTS:
        text = yaml.safe_dump_all(rendered(name), sort_keys=False)
        (FOLDER / f"{name}.yaml").write_text(text)
