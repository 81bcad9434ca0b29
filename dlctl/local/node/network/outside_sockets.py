"""The sockets at which pods reach the outside, and the rules that redirect connections to them.

They live in the agent's own network namespace: the machine's rules and settings are not touched,
nothing outside can connect to a pod, and all of it vanishes with the agent.
"""

import os
import shutil
import socket
import subprocess
from typing import Final

from dlctl.local.node import linux
from dlctl.local.node.network.addresses import CLUSTER_NETWORKS, DNS_PORT, NODE_IP

# Users often have no sbin on their PATH.
_SYSTEM_PATH: Final = "/usr/sbin:/sbin"


def outside_sockets() -> list[socket.socket]:
    """Return a TCP socket that gets each connection to the outside, and a UDP socket for DNS.

    :raises OSError: if connections cannot be redirected.
    """
    relay = socket.create_server(("", 0), backlog=socket.SOMAXCONN)
    dns = socket.socket(type=socket.SOCK_DGRAM)
    try:
        dns.bind((NODE_IP, DNS_PORT))
        _redirect(relay.getsockname()[1])
    except BaseException:
        relay.close()
        dns.close()
        raise
    return [relay, dns]


def _redirect(port: int) -> None:
    """Redirect the namespace's connections to other networks to a port of its own.

    :raises OSError: if neither nftables nor iptables can.
    """
    failures = []
    for program, rules in (
        (("nft", "-f", "-"), _nft_rules(port)),
        (("iptables-restore",), _iptables_rules(port)),
    ):
        path = shutil.which(program[0], path=f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}")
        if path is None:
            failures.append(f"{program[0]} is not installed")
        elif failure := _failure([path, *program[1:]], rules):
            failures.append(f"{program[0]}: {failure}")
        else:
            return
    raise OSError(", ".join(failures))


def _failure(argv: list[str], rules: str) -> str:
    """Run the program; return the first line of its error, empty if it succeeds."""
    try:
        done = subprocess.run(
            argv,
            input=rules,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=linux.pass_on_net_admin,
            # Users may not open the machine's lock, and nobody else changes this namespace.
            env={**os.environ, "XTABLES_LOCKFILE": os.devnull},
        )
    except subprocess.SubprocessError as error:
        return str(error)
    return (done.stderr.splitlines() or ["failed"])[0] if done.returncode else ""


def _nft_rules(port: int) -> str:
    chains = [
        f"chain {hook} {{ type nat hook {hook} priority -100;"
        f" ip daddr {NODE_IP} tcp dport {DNS_PORT} redirect to :{port};"
        f" ip daddr {{ {', '.join(CLUSTER_NETWORKS)} }} return;"
        f" meta l4proto tcp redirect to :{port}; }}"
        for hook in ("prerouting", "output")
    ]
    return "\n".join(["table ip dlctl {", *chains, "}", ""])


def _iptables_rules(port: int) -> str:
    lines = ["*nat"]
    for chain in ("PREROUTING", "OUTPUT"):
        to = f"-j REDIRECT --to-ports {port}"
        lines.append(f"-A {chain} -d {NODE_IP} -p tcp --dport {DNS_PORT} {to}")
        lines += [f"-A {chain} -d {network} -j RETURN" for network in CLUSTER_NETWORKS]
        lines.append(f"-A {chain} -p tcp {to}")
    return "\n".join([*lines, "COMMIT", ""])
