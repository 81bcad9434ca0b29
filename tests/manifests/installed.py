"""What a rendered installation sets and grants."""

import argparse
from collections.abc import Iterator

from dlctl.api.json_types import JSON
from dlctl.cli.settings.sources import add_settings, load_settings
from dlctl.options import Options
from tests.manifests.rendered import Objects


def effective(container: JSON) -> Options:
    """Return the settings of the controller; a field reference stands for itself."""
    parser = argparse.ArgumentParser()
    add_settings(parser)
    command, *flags = container["args"]
    assert command == "controller"
    environment = {
        variable["name"]: variable["value"]
        if "value" in variable
        else variable["valueFrom"]["fieldRef"]["fieldPath"]
        for variable in container.get("env", ())
    }
    return load_settings(parser.parse_args(flags), environment)


def rules(objects: Objects) -> Iterator[JSON]:
    for role in objects.of_kind("ClusterRole") + objects.of_kind("Role"):
        yield from role["rules"]
