"""Elastic jobs in a real cluster: how soon workers come and go, and whether they are the right.

The cluster is one of :mod:`e2e.cluster` with two nodes, ``--audit`` and the controller's image:
times are those at which its API server granted something. Run it there as
``python -m bench.scaling``; it fails if a goal is missed.
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from bench.tables import Figure, show
from e2e import install
from e2e.cluster import programs
from e2e.cluster.programs import Release
from e2e.kubectl import Kubectl
from e2e.suite import elastic, jobs, scaling
from e2e.suite.elastic import SCALERS
from e2e.suite.namespaces import own_namespace
from e2e.testbed import ClusterTestbed

TURNS: Final = 20
LOSSES: Final = 5
SCRIPT_S: Final = 25
OTHERS: Final = 5
GONE_S: Final = 2.0
REPLACED_S: Final = 1.0
DELAY_S: Final = 0.2


def turns(kubectl: Kubectl, testbed: ClusterTestbed) -> list[Figure]:
    """Have one worker more and one less by name, again and again."""
    scaling.start(kubectl, scaling.job())
    there, wrong = [0, 1], 0
    for turn in range(TURNS):
        scaling.scaled(kubectl, "ScaleOut", f"more-{turn}", toAdd={"count": 1})
        there.append(max(there) + 1)
        wrong += set(elastic.workers(kubectl)) != set(scaling.names(there))
        scaling.until_listed(kubectl, there)
        leaves = there.pop(turn % 2)
        named = scaling.names([leaves])
        scaling.scaled(kubectl, "ScaleIn", f"less-{turn}", toDelete={"podNames": named})
        wrong += set(elastic.workers(kubectl)) != set(scaling.names(there))
    out_s, in_s, gone_s = [], [], []
    left = {name: at for at, (name,) in scaling.said(kubectl, "left")}
    for turn in range(TURNS):
        out_s.append(took_s(kubectl, testbed, "scaleouts", f"more-{turn}"))
        in_s.append(took_s(kubectl, testbed, "scaleins", f"less-{turn}"))
    for name, at in left.items():
        gone_s.append(scaling.times(testbed, kubectl, "delete", "pods", name)[-1] - at)
    return [
        Figure("ScaleOut to ScaleSucceeded", spread(out_s)),
        Figure("ScaleIn to ScaleSucceeded", spread(in_s)),
        held("disconnect to gone", gone_s, GONE_S),
        Figure("rosters that were wrong", str(wrong), f"0 of {2 * TURNS}", wrong == 0),
    ]


def took_s(kubectl: Kubectl, testbed: ClusterTestbed, resource: str, name: str) -> float:
    """Return the seconds from a scaler's making to the last word on it."""
    told = scaling.times(testbed, kubectl, "patch", f"{resource}/status", name)
    return told[-1] - scaling.times(testbed, kubectl, "create", resource, name)[0]


def losses(kubectl: Kubectl, testbed: ClusterTestbed) -> list[Figure]:
    """Lose one worker after another, each for the first time."""
    scaling.start(kubectl, scaling.job(restartPolicy="Always", replicas=LOSSES))
    waits_s = []
    for turn in range(LOSSES):
        made = len(scaling.times(testbed, kubectl, "create", "pods"))
        (lost,) = scaling.names([turn])
        kubectl("delete", "pod", lost, "--grace-period=0", "--force")
        scaling.until_listed(kubectl, range(turn + 1, turn + 1 + LOSSES))
        (at, *_) = scaling.times(testbed, kubectl, "delete", "pods", lost)
        waits_s.append(scaling.times(testbed, kubectl, "create", "pods")[made] - at)
    return [held("lost worker to its replacement", waits_s, REPLACED_S)]


def delays(kubectl: Kubectl, testbed: ClusterTestbed) -> list[Figure]:
    """Make other jobs, before and while the script of one runs."""
    scaling.start(kubectl, scaling.job())
    before_s = others(kubectl, testbed, "before")
    env = [{"name": "WAIT_S", "value": str(SCRIPT_S)}]
    what = {"toDelete": {"count": 1}, "script": scaling.SCRIPT, "env": env}
    elastic.scale(kubectl, "ScaleIn", "slow", **what)
    elastic.until_phase(kubectl, SCALERS["ScaleIn"], "slow", "Scaling", within_s=30)
    meanwhile_s = others(kubectl, testbed, "meanwhile")
    status = jobs.status(kubectl, "slow", SCALERS["ScaleIn"])
    during = "ScriptExecuted" not in scaling.condition_types(status)
    delay_s = statistics.median(meanwhile_s) - statistics.median(before_s)
    return [
        Figure("another job's first pod, without", spread(before_s)),
        Figure(f"during a script of {SCRIPT_S} s", spread(meanwhile_s)),
        held("the delay of the median", [delay_s], DELAY_S),
        Figure("all of it during the script", str(during), "True", during),
    ]


def others(kubectl: Kubectl, testbed: ClusterTestbed, when: str) -> list[float]:
    """Make jobs, and return the seconds until each had its first pod."""
    waits_s = []
    for number in range(OTHERS):
        name = f"{when}-{number}"
        kubectl.apply(scaling.job(name))
        first = f"{name}-worker-0"
        kubectl.until(partial(kubectl.get, "pod", first), within_s=30, what=f"the pod {first}")
        (asked,) = scaling.times(testbed, kubectl, "create", "trainingjobs", name)
        waits_s.append(scaling.times(testbed, kubectl, "create", "pods", first)[0] - asked)
    return waits_s


def held(name: str, seconds: Sequence[float], goal_s: float) -> Figure:
    return Figure(name, spread(seconds), f"<= {goal_s:g} s", max(seconds) <= goal_s)


def spread(seconds: Sequence[float]) -> str:
    """Return the median and the most."""
    return f"{statistics.median(seconds):.2f}, {max(seconds):.2f} s"


def main() -> bool:
    cluster = Kubectl()
    release = Release(os.environ.get("K8S", Release.NEWEST))
    bed = ClusterTestbed(Path(os.environ["E2E_CLUSTER"]), programs.folder(release))
    good = True
    with tempfile.TemporaryDirectory() as folder:
        environment = install.environment(jobs.SETTINGS)
        overlay = install.kustomization(Path(folder), jobs.IMAGE, patches=[environment])
        with install.installed(cluster, overlay):
            for title, measure in MEASURES.items():
                with own_namespace(cluster) as kubectl:
                    good &= show(f"{title}: median and most", measure(kubectl, bed))
    return good


MEASURES: Final[dict[str, Callable[[Kubectl, ClusterTestbed], list[Figure]]]] = {
    f"{TURNS} ScaleOuts, and {TURNS} ScaleIns by name": turns,
    f"{LOSSES} workers lost": losses,
    f"{OTHERS} jobs beside a slow script": delays,
}


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
