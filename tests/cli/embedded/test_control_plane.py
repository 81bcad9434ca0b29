"""What ``run`` and ``up`` print about the embedded cluster."""

import tempfile
from pathlib import Path

import pytest

from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import describe_network, embedded_control_plane
from dlctl.errors import ConfigError
from dlctl.local.node.agent.sandboxes import Network
from dlctl.local.node.directories import NodeDirectories
from dlctl.local.node.protocol import Mount

LATIN = "/data/\udcfcbung"


def test_network_without_a_way_out_is_described_with_reason_and_remedy() -> None:
    text = describe_network(Network("isolated", no_internet="nft is not installed"))
    assert "cannot reach the Internet (nft is not installed)" in text
    assert "--network host" in text


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(ClusterOptions({"torch": Path(LATIN)}), id="image"),
        pytest.param(ClusterOptions(directories=NodeDirectories(working_dir=LATIN)), id="workdir"),
        pytest.param(
            ClusterOptions(directories=NodeDirectories((Mount(LATIN, "/opt"),))), id="source"
        ),
        pytest.param(
            ClusterOptions(directories=NodeDirectories((Mount("/opt", LATIN),))), id="target"
        ),
        pytest.param(ClusterOptions(directories=NodeDirectories(claims=Path(LATIN))), id="volumes"),
    ],
)
async def test_directory_that_is_not_utf8_is_rejected(options: ClusterOptions) -> None:
    with pytest.raises(ConfigError, match=r"'/data/\\udcfcbung' is not UTF-8"):
        async with embedded_control_plane((), options, controller=False):
            pass


async def test_temporary_directory_that_is_not_utf8_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", LATIN)
    with pytest.raises(ConfigError, match=r"'/data/\\udcfcbung' is not UTF-8"):
        async with embedded_control_plane((), ClusterOptions(), controller=False):
            pass
