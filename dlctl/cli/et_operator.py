"""What the command line of et-operator has and ours has not.

It is taken so that a Deployment need not be changed; none of these names means anything else to
training-operator.
"""

from collections.abc import Mapping
from typing import Final

# Further names of settings, as fields: a flag, a variable and a key like any other.
ALIASES: Final[Mapping[str, str]] = {
    "init_container_image": "elastic_init_container_image",
    "metrics_addr": "metrics_bind_address",
    "enable_leader_election": "leader_elect",
}
# Flags without effect, and why.
IGNORED: Final[Mapping[str, str]] = {
    "--create-ssh-secret": "a Secret is made for each job that needs one and names none of its own",
}
# Where a Go program would not take the next argument for the value.
BOOLEAN_FLAGS: Final = frozenset(IGNORED)
