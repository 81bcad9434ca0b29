"""Build hook for the long description: the README, with links that hold outside the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[[^\]]*\]\()(?!https?:)([^)]+)")


class LongDescription(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        source, tag = metadata["urls"]["Source"], f"v{metadata['version']}"

        def absolute(link: re.Match[str]) -> str:
            image, start, target = link.groups()
            view = "raw" if image else "blob"
            path = f"README.md{target}" if target.startswith("#") else target
            return f"{image}{start}{source}/{view}/{tag}/{path}"

        text = _LINK.sub(absolute, (Path(self.root) / "README.md").read_text())
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
