"""The container that lets PyTorch workers wait until their master's name can be looked up.

It is training-operator's, word for word; a template of the administrator's may take its place.
Of the template language just the three values are understood that there are to be filled in.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import yaml

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
# A dash beside the braces takes the white space away that is next to it.
_ACTION: Final = re.compile(r"(?:\s*\{\{-\s|\{\{)\s*(.*?)\s*(?:\s-\}\}\s*|\}\})", re.DOTALL)
_VARIABLES: Final = (".InitContainerImage", ".MasterAddr", ".MaxTries")


# The same for all workers of a job, and YAML is slow to read.
@lru_cache(maxsize=16)
def init_containers(defaults: JobDefaults, master: str) -> list[Mapping[str, Any]]:
    """Return what a worker starts with that is to meet a master of this name.

    :raises ConfigError: if the template is not of the form of one.
    """
    values = (defaults.pytorch_init_image, master, str(defaults.pytorch_init_max_tries))
    value_by_variable = dict(zip(_VARIABLES, values, strict=True))

    def value(action: re.Match[str]) -> str:
        if action[1] not in value_by_variable:
            raise ConfigError(
                f"{_FLAG}: {{{{{action[1]}}}}} is not understood: only "
                f"{', '.join(f'{{{{{name}}}}}' for name in _VARIABLES)} are"
            )
        return value_by_variable[action[1]]

    text = _ACTION.sub(value, defaults.pytorch_init_template or _DEFAULT_TEMPLATE)
    try:
        containers = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{_FLAG}: filled in, it is no YAML: {error}") from error
    if not isinstance(containers, list) or not all(map(_is_container, containers)):
        raise ConfigError(f"{_FLAG}: must be a list of containers with a name each")
    return containers


def check_template(defaults: JobDefaults) -> None:
    """Find out at the start whether the template can be filled in.

    :raises ConfigError: if it cannot.
    """
    init_containers(defaults, "master")


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value.get("name"))
