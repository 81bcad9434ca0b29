"""The init container in which PyTorch workers wait until their master's name resolves.

The same as training-operator's; the administrator may set another template. Of Go's template
language, only the three variables are supported.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import attrs
import yaml

from dlctl import manifest_yaml
from dlctl.errors import ConfigError
from dlctl.options import Options

_DEFAULT_TEMPLATE: Final = """\
- name: init-pytorch
  image: {{.InitContainerImage}}
  imagePullPolicy: IfNotPresent
  resources:
    limits: {cpu: 100m, memory: 20Mi}
    requests: {cpu: 50m, memory: 10Mi}
  command:
    - sh
    - -c
    - "err=1;for i in $(seq {{.MaxTries}}); do if nslookup {{.MasterAddr}}; then err=0 && break; \\
      fi;echo waiting for master; sleep 2; done; exit $err"
"""
_DEFAULT_OPTIONS: Final = Options()
_FLAG: Final = "--pytorch-init-container-template-file"
# A dash next to the braces trims the adjacent white space.
_ACTION: Final = re.compile(r"(?:\s*\{\{-\s|\{\{)\s*(.*?)\s*(?:\s-\}\}\s*|\}\})", re.DOTALL)
# Stands for the master's name until the template is parsed.
_MASTER: Final = "dlctl-master-address"
_VARIABLES: Final = (".InitContainerImage", ".MasterAddr", ".MaxTries")


@attrs.frozen
class PyTorchInit:
    """The administrator's settings of the container."""

    image: str = _DEFAULT_OPTIONS.pytorch_init_container_image
    # The text of a template; empty for the built-in one.
    template: str = ""
    max_tries: int = _DEFAULT_OPTIONS.pytorch_init_container_max_tries


def init_containers(settings: PyTorchInit, master: str) -> list[Mapping[str, Any]]:
    """Return the init containers of a worker that waits for a master with this name.

    :raises ConfigError: if the template is malformed.
    """
    if "." in master and not settings.template:
        # nslookup of BusyBox does not complete names that contain a dot.
        master = f"{master} || getent hosts {master}"
    return [_with_master(container, master) for container in _parsed_template(settings)]


def _with_master(value: Any, master: str) -> Any:
    if isinstance(value, str):
        return value.replace(_MASTER, master)
    if isinstance(value, Mapping):
        return {key: _with_master(item, master) for key, item in value.items()}
    return [_with_master(item, master) for item in value] if isinstance(value, list) else value


# Cached: the same for all jobs, and YAML is slow to parse.
@lru_cache(maxsize=16)
def _parsed_template(settings: PyTorchInit) -> list[Mapping[str, Any]]:
    values = (settings.image, _MASTER, str(settings.max_tries))
    value_by_variable = dict(zip(_VARIABLES, values, strict=True))

    def value(action: re.Match[str]) -> str:
        if action[1] not in value_by_variable:
            raise ConfigError(
                f"{_FLAG}: {{{{{action[1]}}}}} is not supported: use only "
                f"{', '.join(f'{{{{{name}}}}}' for name in _VARIABLES)}"
            )
        return value_by_variable[action[1]]

    text = _ACTION.sub(value, settings.template or _DEFAULT_TEMPLATE)
    try:
        containers = manifest_yaml.load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{_FLAG}: the rendered template is not YAML: {error}") from error
    if not isinstance(containers, list) or not all(map(_is_container, containers)):
        raise ConfigError(f"{_FLAG}: must be a list of containers, each with a name")
    return containers


def check_template(settings: PyTorchInit) -> None:
    """Check at start that the template can be rendered.

    :raises ConfigError: if it cannot.
    """
    init_containers(settings, "master")


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value.get("name"))
