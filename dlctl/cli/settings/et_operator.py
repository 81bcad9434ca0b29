"""Flags of et-operator that dlctl accepts, so that its Deployment works unchanged.

None of these names means anything else to training-operator.
"""

from collections.abc import Mapping
from typing import Final

# Alternative names of settings, by field: each works as flag, variable and key.
ALIASES: Final[Mapping[str, str]] = {
    "init_container_image": "elastic_init_container_image",
    "metrics_addr": "metrics_bind_address",
    "enable_leader_election": "leader_elect",
}
# Flags without effect, with the reason.
IGNORED: Final[Mapping[str, str]] = {
    "--create-ssh-secret": "each job that needs a Secret and names none gets its own",
}
# Flags that take no separate value in Go programs.
BOOLEAN_FLAGS: Final = frozenset(IGNORED)
