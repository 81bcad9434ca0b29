"""The messages of conditions, kind by kind, from the code that writes them."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from dlctl.api.job import Job
from dlctl.api.meta import ObjectKey
from dlctl.api.status.job_status import Failure
from dlctl.cli.installed_kinds import installed_kinds
from dlctl.cli.manifests.loading import as_job_object
from dlctl.dialects.kinds import kind_of_api_version
from docs.generate.tables import table

_EXAMPLES: Final = Path(__file__).parents[2] / "examples"
_KEY: Final = ObjectKey("ml", "mnist")
_WHEN: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


def condition_messages() -> str:
    """Return what the conditions of a job ``ml/mnist`` say: of each example, unless it repeats."""
    rows = dict.fromkeys(_row(api_version, job) for api_version, job in _jobs())
    titles = ("kind", "`Running`", "`Succeeded`", "`Failed`, for a replica with exit code 1")
    return table(titles, rows)


def _jobs() -> Iterator[tuple[str, Job]]:
    kinds = installed_kinds()
    for path in sorted(_EXAMPLES.glob("*/*.yaml")):
        manifest: dict[str, Any] = next(yaml.safe_load_all(path.read_text()))
        kind = kind_of_api_version(kinds, manifest["apiVersion"], manifest["kind"])
        if kind is not None:
            manifest["metadata"] |= {"name": _KEY.name, "namespace": _KEY.namespace}
            obj = kind.decode(as_job_object(kind, manifest))
            yield manifest["apiVersion"], kind.read(obj)


def _row(api_version: str, job: Job) -> tuple[str, ...]:
    replica = next(job.replicas)
    failure = Failure(
        replica=str(replica),
        pod=f"mnist-{replica}",
        reason="Error",
        message="exit code 1 (general error)",
        time=_WHEN,
        exit_code=1,
    )
    said = (
        job.messages.running(),
        job.messages.succeeded(),
        job.messages.failed(failure, 1),
    )
    return (f"{job.resource.kind} `{api_version}`", *said)
