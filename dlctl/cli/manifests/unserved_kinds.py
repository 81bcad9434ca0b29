"""Whether dlctl serves the kind of a manifest, and what it serves instead."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dlctl.cli.suggestions import closest, did_you_mean
from dlctl.dialects.kind import Kind
from dlctl.dialects.kubeflow.kind import GROUP

_KUBEFLOW_V1: Final = "it has the form of kubeflow.org/v1: write apiVersion kubeflow.org/v1"
# Jobs of other operators, by group or version and by kind, with what to do about them.
_OTHER_OPERATORS: Final[Mapping[tuple[str, str], str]] = {
    ("trainer.kubeflow.org", "TrainJob"): (
        "Kubeflow Trainer runs it by runtimes of its cluster: write it as the kind of its "
        "framework, such as PyTorchJob in kubeflow.org/v1"
    ),
    ("tensorflow.org", "TFJob"): "write kind TfJob, or apiVersion kubeflow.org/v1alpha1",
    ("mlkube.io", "TfJob"): (
        "it has the form of tensorflow.org/v1alpha1: write apiVersion tensorflow.org/v1alpha1"
    ),
    **{
        ("training.kubedl.io", kind): _KUBEFLOW_V1
        for kind in ("TFJob", "PyTorchJob", "XGBoostJob", "MPIJob")
    },
}
# Kinds of Kubeflow's other components in its group: Katib, notebooks, profiles and pipelines.
_OTHER_COMPONENTS: Final = frozenset(
    """
    Experiment Notebook PodDefault Profile ScheduledWorkflow StudyJob Suggestion Trial Viewer
    """.split()
)


def unserved_reason(kinds: Sequence[Kind], manifest: Mapping[str, Any]) -> str:
    """Return why a manifest that looks like a job is none; empty for all other objects."""
    api_version, name = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    group, _, version = api_version.rpartition("/")
    same_group = [kind for kind in kinds if kind.resource.group == group]
    if any(name in _names(kind) and version in kind.dialects for kind in same_group):
        return ""
    if group == GROUP and name in _OTHER_COMPONENTS:
        return ""
    title = f"dlctl does not serve {name} in {api_version}"
    other = _OTHER_OPERATORS.get((api_version, name)) or _OTHER_OPERATORS.get((group, name))
    if other:
        return f"{title}: {other}"
    versions = [f"{kind.resource.group}/{v}" for kind in kinds for v in _versions(kind, name)]
    if versions:
        return f"{title}; it serves {name} in {', '.join(versions)}"
    if same_group:
        served = sorted({n for kind in same_group for n in _names(kind)})
        # All jobs are alike but for the name of their framework.
        by_stem = {_stem(each): each for each in served}
        if similar := closest(_stem(name), by_stem):
            return f"{title}; did you mean {by_stem[similar]}?"
        return f"{title}; it serves {', '.join(served)} of this group"
    return ""


def not_served(api_version: str, kind: str, served: Iterable[str]) -> str:
    """Return that a cluster does not serve a kind, from those that it serves in the version."""
    fix = did_you_mean(kind, served) or ": leave it out here"
    return f"the cluster does not serve kind {kind} in {api_version}{fix}"


def _stem(name: str) -> str:
    return re.sub("jobs?$", "", name, flags=re.IGNORECASE)


def _names(kind: Kind) -> list[str]:
    return [kind.resource.kind, *(scaler.kind for scaler in kind.scalers)]


def _versions(kind: Kind, name: str) -> list[str]:
    return list(kind.dialects) if name in _names(kind) else []
