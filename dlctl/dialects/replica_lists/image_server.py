"""The replica type of a list form whose entries need no template: a server in the job's image."""

from collections.abc import Mapping
from typing import Any, Final

import attrs


@attrs.frozen
class ImageServer:
    """A server of the framework, which runs in the image that the spec gives."""

    replica_type: str
    # Its program, in Python.
    program: str
    # If empty, an entry without a template is invalid unless the spec gives an image.
    default_image: str = ""

    def template(self, container: str, image: str) -> Mapping[str, Any] | None:
        """Return the pod template, given the names of the container and the image."""
        image = image or self.default_image
        if not image:
            return None
        command = ["python", "-c", self.program]
        containers = [{"name": container, "image": image, "command": command}]
        return {"spec": {"containers": containers, "restartPolicy": "OnFailure"}}


# Declared by the mx-operators, never implemented.
MXNET_SERVER: Final = ImageServer("server", "import mxnet")
