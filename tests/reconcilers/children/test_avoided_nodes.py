"""How pods avoid nodes: terms in their affinity, merged with the user's."""

import datetime
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from dlctl.api.objects.pods import AVOIDED_NODES
from dlctl.api.status.job_status import JobStatus
from dlctl.api.status.verdict import Attempt
from dlctl.reconcilers.children.avoided_nodes import (
    AvoidedNode,
    is_avoidance_dropped,
    with_avoided_nodes,
)
from tests.builders import NOW, renderer_of, training_job

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES = (AvoidedNode("node-b", "host-b"), AvoidedNode("node-a", "host-a"))
EXCLUDED = {
    "key": "kubernetes.io/hostname",
    "operator": "NotIn",
    "values": ["host-a", "host-b"],
}


def pod(**spec: Any) -> JSON:
    return {"metadata": {"name": "pod", "annotations": {"user": "own"}}, "spec": spec}


def terms(made: JSON) -> Any:
    return made["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def test_pod_avoids_hosts_by_their_label_and_names_nodes() -> None:
    made = with_avoided_nodes(pod(), NODES)
    assert terms(made) == [{"matchExpressions": [EXCLUDED]}]
    assert made["metadata"]["annotations"] == {"user": "own", AVOIDED_NODES: "node-b,node-a"}


def test_each_alternative_of_the_user_excludes_the_hosts() -> None:
    own = {"key": "zone", "operator": "In", "values": ["a"]}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["node-c"]}]
    given_terms = [{"matchExpressions": [own]}, {"matchFields": fields}]
    preferred = [{"weight": 1, "preference": {"matchExpressions": [own]}}]
    affinity = {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": given_terms},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
        "podAffinity": {"some": "thing"},
    }
    made = with_avoided_nodes(pod(affinity=affinity), NODES)
    assert terms(made) == [
        {"matchExpressions": [own, EXCLUDED]},
        {"matchFields": fields, "matchExpressions": [EXCLUDED]},
    ]
    node_affinity = made["spec"]["affinity"].pop("nodeAffinity")
    assert node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] == preferred
    assert made["spec"]["affinity"] == {"podAffinity": {"some": "thing"}}


def test_empty_alternative_matches_no_node_before_and_after() -> None:
    required: JSON = {"nodeSelectorTerms": [{}]}
    made = with_avoided_nodes(pod(affinity={"nodeAffinity": {REQUIRED: required}}), NODES)
    assert terms(made) == [{}]


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(pod(nodeName="node-a"), id="bound by the user"),
        pytest.param(pod(affinity="x"), id="malformed affinity"),
        pytest.param(pod(affinity={"nodeAffinity": []}), id="malformed node affinity"),
        pytest.param(
            pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": ["x"]}}}),
            id="malformed terms",
        ),
        *(
            pytest.param(
                {
                    "metadata": {"annotations": {f"kueue.x-k8s.io/podset-{kind}-topology": "x"}},
                    "spec": {},
                },
                id=f"{kind} topology",
            )
            for kind in ("required", "preferred", "unconstrained")
        ),
    ],
)
def test_pod_is_left_alone(kept: JSON) -> None:
    assert with_avoided_nodes(kept, NODES) is kept


def test_without_avoided_nodes_the_pod_is_the_same() -> None:
    own = pod(affinity={"nodeAffinity": {}})
    assert with_avoided_nodes(own, ()) is own


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["nodeAffinity", REQUIRED, "nodeSelectorTerms", "matchExpressions"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(ANYTHING)
def test_any_affinity_can_be_merged(affinity: Any) -> None:
    own = pod(affinity=affinity)
    made = with_avoided_nodes(own, NODES)
    assert own == pod(affinity=affinity)
    assert (
        made is own
        or EXCLUDED in [one for term in terms(made) for one in term.get("matchExpressions", ())]
        or not any(terms(made))
    )


def test_all_pods_of_a_job_avoid_the_nodes_chosen_for_it() -> None:
    renderer = renderer_of(training_job("PyTorchJob", Master=1, Worker=2))
    avoiding = attrs.evolve(renderer, choose_avoided=lambda: NODES)
    for replica in renderer.job.replicas:
        assert avoiding.pod(replica) == with_avoided_nodes(renderer.pod(replica), NODES)
        assert terms(avoiding.pod(replica))


@pytest.mark.parametrize(
    ("ended_s", "dropped"),
    [
        pytest.param(None, True, id="in this attempt"),
        pytest.param(-1, True, id="the last attempt ended before"),
        pytest.param(1, False, id="another attempt has begun since"),
    ],
)
def test_avoidance_is_dropped_for_one_attempt(ended_s: int | None, dropped: bool) -> None:
    end = None if ended_s is None else NOW + datetime.timedelta(seconds=ended_s)
    status = JobStatus(avoidance_dropped_at=NOW, attempts=(Attempt(0, NOW, end),))
    assert is_avoidance_dropped(status) == dropped
    assert not is_avoidance_dropped(attrs.evolve(status, avoidance_dropped_at=None))


def test_template_cannot_make_its_pods_look_like_ones_that_avoid_nodes() -> None:
    # Its pending pods would be replaced without end once the job has given up to avoid nodes.
    manifest = training_job("PyTorchJob", Master=1)
    template = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {"annotations": {AVOIDED_NODES: "node-z", "user": "own"}}
    renderer = renderer_of(manifest)
    (replica,) = renderer.job.replicas
    annotations = renderer.pod(replica)["metadata"]["annotations"]
    assert AVOIDED_NODES not in annotations
    assert annotations["user"] == "own"
    avoiding = attrs.evolve(renderer, choose_avoided=lambda: NODES).pod(replica)
    assert avoiding["metadata"]["annotations"][AVOIDED_NODES] == "node-b,node-a"
