"""What ``run`` and ``up`` print about the embedded cluster."""

from dlctl.cli.local_cluster import describe_network
from dlctl.local.node.sandboxes import Network


def test_network_without_a_way_out_is_described_with_reason_and_remedy() -> None:
    text = describe_network(Network("isolated", no_internet="nft is not installed"))
    assert "cannot reach the Internet (nft is not installed)" in text
    assert "--network host" in text
