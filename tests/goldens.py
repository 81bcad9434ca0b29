"""The manifests whose rendered children stand in ``tests/golden``, one or more for each dialect.

Those of Kubeflow's and et-operator's kinds are files themselves: a job, and after it what it
consists of. ``python -m tests.goldens`` rewrites the children; read the difference before it is
committed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from dlctl.api.json_types import JSON
from dlctl.cli.manifests.job_renderer import with_all_workers_listed
from dlctl.reconcilers.observe import Children, observe
from tests.builders import (
    NOW,
    bare_job,
    entry,
    mxjob,
    renderer_of,
    tfjob_of_tensorflow_org,
    xgboost_operators_job,
)

FOLDER: Final = Path(__file__).parent / "golden"
# Stands in the files for the home of root in a container.
_ROOT_HOME: Final = "${ROOT_HOME}"

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
    "tensorflow-v1alpha1": tfjob_of_tensorflow_org(RuntimeId="ab1c"),
    "xgboost-operator-v1": xgboost_operators_job(),
    "mpba-v1-mxjob": bare_job("MXJob", scheduler=1, server=1, worker=1),
    "mpba-v1-tfjob": bare_job("TFJob", ps=1, worker=1),
}


KUBEFLOW: Final = sorted((FOLDER / "kubeflow-v1").glob("*.yaml"))
ET_OPERATOR: Final = sorted((FOLDER / "et-operator").glob("*.yaml"))


def rendered(manifest: Mapping[str, Any]) -> list[JSON]:
    """Return what a job consists of when its last pod starts, in the order of creation."""
    renderer = renderer_of(manifest)
    renderer = attrs.evolve(renderer, job=with_all_workers_listed(renderer.job))
    desired = renderer.desired(observe(renderer.job, Children(), NOW))
    return [
        *(renderer.dependent(dependent) for dependent in renderer.dependents(())),
        *(renderer.service(replica) for replica in desired.services),
        *(renderer.pod(replica) for replica in renderer.job.replicas),
    ]


def written(name: str) -> list[JSON]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


def job_and_children(path: Path) -> tuple[JSON, list[JSON]]:
    """Return the job that a file begins with, and its children as the file has them."""
    manifest, *children = yaml.safe_load_all(path.read_text().replace(_ROOT_HOME, "/root"))
    return manifest, children


def as_on_server(manifest: JSON) -> JSON:
    """Return a manifest as the server would hold it."""
    metadata = {**manifest["metadata"], "uid": "job-uid", "generation": 1}
    return {**manifest, "metadata": metadata}


class _Plain(yaml.SafeDumper):
    """Repeats what occurs twice, for people to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _write(path: Path, documents: Sequence[JSON]) -> None:
    text = yaml.dump_all(documents, Dumper=_Plain, sort_keys=False)
    path.write_text(text.replace("mountPath: /root", f"mountPath: {_ROOT_HOME}"))


if __name__ == "__main__":
    for name, of_list in MANIFESTS.items():
        _write(FOLDER / f"{name}.yaml", rendered(of_list))
    for file in (*KUBEFLOW, *ET_OPERATOR):
        of_map, _ = job_and_children(file)
        _write(file, [of_map, *rendered(as_on_server(of_map))])
