"""The configuration files of a real node: containerd, its network, the kubelet, the name server.

Pure text; two settings are for machines without CAP_SYS_RESOURCE and with cgroups of version 1.
"""

import json
from pathlib import Path
from typing import Final

from e2e.cluster.addresses import GATEWAY, PODS, node_address, pod_addresses

BRIDGE: Final = "dlctl0"
PAUSE: Final = "localhost/pause:1"


def containerd(directory: Path, socket: Path) -> str:
    runtime = 'plugins."io.containerd.cri.v1.runtime"'
    return f"""version = 3
root = "{directory}/containerd"
state = "{directory}/containerd-state"

[grpc]
address = "{socket}"

[ttrpc]
address = "{socket}.ttrpc"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"

[{runtime}]
# Lowering the score below one's own takes CAP_SYS_RESOURCE.
restrict_oom_score_adj = true

[{runtime}.cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "{directory}/cni"

[{runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{runtime}.containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def network(directory: Path, number: int) -> str:
    first, last = pod_addresses(number)
    addresses = {
        "type": "host-local",
        "dataDir": f"{directory}/ipam",
        "ranges": [[{"subnet": PODS, "rangeStart": first, "rangeEnd": last, "gateway": GATEWAY}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "1.0.0", "name": "dlctl", "plugins": [bridge, ports]})


def kubelet(directory: Path, socket: Path, number: int, cgroup: str) -> str:
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": node_address(number),
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "healthzPort": 0,
            "containerRuntimeEndpoint": f"unix://{socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup,
            "enforceNodeAllocatable": [],
            # Machines with the first version of cgroups are still about.
            "failCgroupV1": False,
            "failSwapOn": False,
            "clusterDomain": "cluster.local",
            "clusterDNS": [GATEWAY],
            "resolvConf": "",
            # A full disk of the machine is not what is tested.
            "evictionHard": {
                "nodefs.available": "1%",
                "imagefs.available": "1%",
                "memory.available": "100Mi",
            },
            "imageGCHighThresholdPercent": 100,
            "maxPods": 200,
            # A lost node is to be noticed soon.
            "nodeLeaseDurationSeconds": 4,
            "nodeStatusUpdateFrequency": "2s",
            "podLogsDir": f"{directory}/logs",
        }
    )


def name_server(kubeconfig: Path) -> str:
    return f""".:53 {{
  bind {GATEWAY}
  errors
  kubernetes cluster.local {{
    kubeconfig {kubeconfig} e2e
    ttl 1
  }}
}}
"""
