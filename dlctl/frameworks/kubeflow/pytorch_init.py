"""The init container in which PyTorch workers wait until their master's name resolves.

The same as training-operator's; the administrator may set another template. Of Go's template
language, only the three variables are supported.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import yaml

from dlctl import manifest_yaml
from dlctl.api.defaults import JobDefaults
from dlctl.errors import ConfigError

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
_FLAG: Final = "--pytorch-init-container-template-file"
# A dash next to the braces trims the adjacent white space.
_ACTION: Final = re.compile(r"(?:\s*\{\{-\s|\{\{)\s*(.*?)\s*(?:\s-\}\}\s*|\}\})", re.DOTALL)
# Stands for the master's name until the template is parsed.
_MASTER: Final = "dlctl-master-address"
_VARIABLES: Final = (".InitContainerImage", ".MasterAddr", ".MaxTries")


def init_containers(defaults: JobDefaults, master: str) -> list[Mapping[str, Any]]:
    """Return the init containers of a worker that waits for a master with this name.

    :raises ConfigError: if the template is malformed.
    """
    if "." in master and not defaults.pytorch_init_template:
        # nslookup of BusyBox does not complete names that contain a dot.
        master = f"{master} || getent hosts {master}"
    return [_with_master(container, master) for container in _parsed_template(defaults)]


def _with_master(value: Any, master: str) -> Any:
    if isinstance(value, str):
        return value.replace(_MASTER, master)
    if isinstance(value, Mapping):
        return {key: _with_master(item, master) for key, item in value.items()}
    return [_with_master(item, master) for item in value] if isinstance(value, list) else value


# Cached: the same for all jobs, and YAML is slow to parse.
@lru_cache(maxsize=16)
def _parsed_template(defaults: JobDefaults) -> list[Mapping[str, Any]]:
    values = (defaults.pytorch_init_image, _MASTER, str(defaults.pytorch_init_max_tries))
    value_by_variable = dict(zip(_VARIABLES, values, strict=True))

    def value(action: re.Match[str]) -> str:
        if action[1] not in value_by_variable:
            raise ConfigError(
                f"{_FLAG}: {{{{{action[1]}}}}} is not supported: use only "
                f"{', '.join(f'{{{{{name}}}}}' for name in _VARIABLES)}"
            )
        return value_by_variable[action[1]]

    text = _ACTION.sub(value, defaults.pytorch_init_template or _DEFAULT_TEMPLATE)
    try:
        containers = manifest_yaml.load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{_FLAG}: the rendered template is not YAML: {error}") from error
    if not isinstance(containers, list) or not all(map(_is_container, containers)):
        raise ConfigError(f"{_FLAG}: must be a list of containers, each with a name")
    return containers


def check_template(defaults: JobDefaults) -> None:
    """Check at start that the template can be rendered.

    :raises ConfigError: if it cannot.
    """
    init_containers(defaults, "master")


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value.get("name"))
