"""How a node's pods get their addresses: the standard bridge plugin, one subnet for each node.

Host ports work by the portmap plugin, whose rules live in the node's network namespace. There is no kube-proxy in the
rig, so services have no address that answers.
"""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from typing import Final

CONFIG: Final = "/etc/cni/net.d/10-partage.conflist"


def network(pods: IPv4Network) -> str:
    bridge = {
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": str(pods)}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap]})
