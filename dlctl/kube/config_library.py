"""kubernetes_asyncio's readers of kubeconfigs and service accounts, without its generated client.

That client is 700 modules, which take 38 MB and a second, and dlctl has a client of its own.
"""

import functools
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any, Final

import attrs

_LIBRARY: Final = "kubernetes_asyncio"
_CLIENT: Final = f"{_LIBRARY}.client"


@attrs.frozen
class ConfigLibrary:
    """The parts of the library that dlctl uses."""

    configuration: Any
    in_cluster_loader: Any
    kubeconfig_loader: Any
    kubeconfig_merger: Any


@functools.cache
def config_library() -> ConfigLibrary:
    """Import the library's configuration with the packages around it left empty.

    Afterwards the library counts as not imported, so that a later import gets all of it.
    """
    imported = {name: sys.modules.pop(name) for name in _modules()}
    try:
        _add_empty(_LIBRARY)
        client = _add_empty(_CLIENT)
        configuration = importlib.import_module(f"{_CLIENT}.configuration").Configuration
        # The configuration names the client in annotations of functions that dlctl does not call.
        vars(client).update(Configuration=configuration, ApiClient=object)
        kubeconfig = importlib.import_module(f"{_LIBRARY}.config.kube_config")
        in_cluster = importlib.import_module(f"{_LIBRARY}.config.incluster_config")
    finally:
        for name in _modules():
            del sys.modules[name]
        sys.modules.update(imported)
    return ConfigLibrary(
        configuration,
        in_cluster.InClusterConfigLoader,
        kubeconfig.KubeConfigLoader,
        kubeconfig.KubeConfigMerger,
    )


def _modules() -> list[str]:
    return [name for name in sys.modules if f"{name}.".startswith(f"{_LIBRARY}.")]


def _add_empty(name: str) -> ModuleType:
    """Add a package whose submodules can be imported, but whose own code has not run."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"{name} is not installed", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    return module
