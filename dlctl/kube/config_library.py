"""kubernetes_asyncio's readers of kubeconfigs and service accounts, without its generated client.

That client is 700 modules, which take 38 MB and a second, and dlctl has a client of its own. The
configuration also imports urllib3, another MB, for the name of its logger.
"""

import functools
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any, Final

import attrs

from dlctl.errors import ConfigError

_LIBRARY: Final = "kubernetes_asyncio"
_CLIENT: Final = f"{_LIBRARY}.client"
_HTTP_LIBRARY: Final = "urllib3"


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

    Afterwards they count as not imported, so that a later import gets all of them.
    :raises ConfigError: if the user has no home directory.
    """
    imported = {name: sys.modules.pop(name) for name in _modules()}
    try:
        _add_empty(_LIBRARY)
        # Not even looked for: a later release may need it no more.
        sys.modules[_HTTP_LIBRARY] = ModuleType(_HTTP_LIBRARY)
        client = _add_empty(_CLIENT)
        configuration = importlib.import_module(f"{_CLIENT}.configuration").Configuration
        # The configuration names the client in annotations of functions that dlctl does not call.
        vars(client).update(Configuration=configuration, ApiClient=object)
        kubeconfig = importlib.import_module(f"{_LIBRARY}.config.kube_config")
        in_cluster = importlib.import_module(f"{_LIBRARY}.config.incluster_config")
    except RuntimeError as error:
        # The library looks for ~/.kube/config as it is imported.
        raise ConfigError("the user has no home directory: set HOME to one") from error
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
    return [name for name in sys.modules if name.partition(".")[0] in (_LIBRARY, _HTTP_LIBRARY)]


def _add_empty(name: str) -> ModuleType:
    """Add a package whose submodules can be imported, but whose own code has not run."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"{name} is not installed", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    return module
