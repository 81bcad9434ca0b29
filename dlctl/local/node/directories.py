"""Directories of the machine that the user of a node gives to all of its pods."""

from pathlib import Path

import attrs

from dlctl.local.node.protocol import Mount


@attrs.frozen
class NodeDirectories:
    """The directories of the machine in containers, besides the volumes of their manifest."""

    # In every container, on top of its volumes.
    mounts: tuple[Mount, ...] = ()
    # The directory of containers that set no workingDir, or one that is missing; empty to give each
    # one of its own.
    working_dir: str = ""
    # One directory per claim, as NAMESPACE/NAME; None keeps them in the run directory.
    claims: Path | None = None

    def claims_in(self, run_dir: Path) -> Path:
        """Return the directory of all claims, which stand for persistent volumes."""
        return self.claims or run_dir / "claims"
