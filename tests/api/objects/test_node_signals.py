"""What the taints, conditions and labels of nodes announce, with the default settings."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.objects.node_signals import NodeSignals, SignalSet
from dlctl.api.objects.nodes import Node
from dlctl.api.status.verdict import Cause
from dlctl.errors import ConfigError
from dlctl.options import NODE_DRAIN_SIGNALS, NODE_FAULT_SIGNALS, Options

DEFAULTS = NodeSignals.of(draining=NODE_DRAIN_SIGNALS, fault=NODE_FAULT_SIGNALS)


def node(**fields: Any) -> Node:
    wire = {"metadata": {"name": "node-a", "labels": fields.pop("labels", {})}, **fields}
    return msgspec.convert(wire, Node)


def tainted(key: str) -> Node:
    return node(spec={"taints": [{"key": key, "effect": "NoSchedule"}]})


def conditioned(type_: str, status: str = "True", reason: str = "") -> Node:
    condition = {"type": type_, "status": status, "reason": reason}
    return node(status={"conditions": [{"type": "Ready", "status": "True"}, condition]})


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        (tainted("ToBeDeletedByClusterAutoscaler"), Cause.SCALE_DOWN),
        (tainted("karpenter.sh/disrupted"), Cause.SCALE_DOWN),
        (tainted("karpenter.sh/disruption"), Cause.SCALE_DOWN),
        (tainted("aws-node-termination-handler/spot-itn"), Cause.PREEMPTION),
        (tainted("aws-node-termination-handler/scheduled-maintenance"), Cause.PREEMPTION),
        (tainted("aws-node-termination-handler/asg-lifecycle-termination"), Cause.PREEMPTION),
        (tainted("cloud.google.com/impending-node-termination"), Cause.PREEMPTION),
        (node(labels={"cloud.google.com/active-node-maintenance": "ONGOING"}), Cause.PREEMPTION),
        (conditioned("PreemptScheduled"), Cause.PREEMPTION),
        (conditioned("TerminateScheduled"), Cause.PREEMPTION),
        (conditioned("RebootScheduled"), Cause.PREEMPTION),
        (conditioned("RedeployScheduled"), Cause.PREEMPTION),
        (tainted("node.kubernetes.io/unreachable"), Cause.NODE),
        (tainted("node.kubernetes.io/out-of-service"), Cause.NODE),
    ],
)
def test_node_with_a_known_signal_is_draining(shown: Node, cause: Cause) -> None:
    draining = DEFAULTS.draining(shown)
    assert draining is not None
    assert draining.cause is cause
    assert draining.entry.partition("=")[0] in draining.text
    assert DEFAULTS.fault(shown) is None


@pytest.mark.parametrize(
    "type_",
    [
        *("KernelDeadlock", "ReadonlyFilesystem", "CperHardwareErrorFatal", "XfsShutdown"),
        *("GPUMissing", "NVLinkStatusInactive", "XIDErrors", "IBLinkFlapping"),
        *(
            f"Gpu{part}Watch"
            for part in "Mem Thermal Pcie Power Inforom Sm Nvlink Mcu Pmu Driver".split()
        ),
        *(f"SysLogs{part}" for part in ("XIDError", "SXIDError", "GPUFallenOff")),
        *("NVSwitchFatalError", "NVSwitchDown"),
    ],
)
def test_node_is_unhealthy_while_a_condition_is_true(type_: str) -> None:
    fault = DEFAULTS.fault(conditioned(type_, reason="Broken"))
    assert fault is not None
    assert fault.text == f"has the condition {type_}=True (Broken)"
    assert DEFAULTS.fault(conditioned(type_, "False")) is None
    assert DEFAULTS.fault(conditioned(type_, "Unknown")) is None
    assert DEFAULTS.draining(conditioned(type_)) is None


@pytest.mark.parametrize(
    "part", ["AcceleratedHardware", "Networking", "Storage", "Kernel", "ContainerRuntime"]
)
def test_node_is_unhealthy_while_a_condition_is_false(part: str) -> None:
    fault = DEFAULTS.fault(conditioned(f"{part}Ready", "False", "NvidiaXID79Error"))
    assert fault is not None
    assert fault.text == f"has the condition {part}Ready=False (NvidiaXID79Error)"
    assert DEFAULTS.fault(conditioned(f"{part}Ready", "True")) is None


@pytest.mark.parametrize(
    "shown",
    [
        tainted("DeletionCandidateOfClusterAutoscaler"),
        tainted("aws-node-termination-handler/rebalance-recommendation"),
        tainted("node.kubernetes.io/unschedulable"),
        tainted("kubernetes.azure.com/scalesetpriority"),
        tainted("nvidia.com/gpu"),
        conditioned("FreezeScheduled"),
        conditioned("MemoryPressure"),
        conditioned("PreemptScheduled", "False"),
        node(labels={"cloud.google.com/active-node-maintenance": "PENDING"}),
        node(labels={"kubernetes.azure.com/scalesetpriority": "spot"}),
        node(),
        node(spec={"taints": None}, status={"conditions": None}),
    ],
)
def test_node_shows_no_signal(shown: Node) -> None:
    assert DEFAULTS.draining(shown) is None
    assert DEFAULTS.fault(shown) is None


def test_empty_setting_disables_a_class() -> None:
    signals = NodeSignals.of(draining=[], fault=[])
    assert signals.draining(tainted("ToBeDeletedByClusterAutoscaler")) is None
    assert signals.fault(conditioned("KernelDeadlock")) is None


NAMES = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True)


@given(NAMES, st.sampled_from(["True", "False", "Unknown"]), st.sampled_from(["True", "False"]))
def test_condition_matches_exactly_the_status_of_its_entry(
    type_: str, shown: str, wanted: str
) -> None:
    entry = type_ if wanted == "True" else f"{type_}=False"
    found = SignalSet.of([entry]).find(conditioned(type_, shown))
    assert (found is not None) == (shown == wanted)


@given(NAMES, NAMES)
def test_taint_matches_by_its_key(key: str, wanted: str) -> None:
    assert (SignalSet.of([wanted]).find(tainted(key)) is not None) == (key == wanted)


def test_long_reason_is_cut() -> None:
    found = DEFAULTS.fault(conditioned("XIDErrors", reason="x" * 5000))
    assert found is not None
    assert len(found.text) < 200


@pytest.mark.parametrize("setting", ["node_drain_signals", "node_fault_signals"])
@pytest.mark.parametrize("entry", ["=True", "Ready=", "a=b=c", "two words", "-Ready", "Ready:x"])
def test_malformed_entry_is_rejected_by_name(setting: str, entry: str) -> None:
    with pytest.raises(ConfigError, match="use Name") as caught:
        Options(**{setting: ("Fine", entry)})  # type: ignore[arg-type]
    assert repr(entry) in str(caught.value)
    assert setting.replace("_", "-") in str(caught.value)
