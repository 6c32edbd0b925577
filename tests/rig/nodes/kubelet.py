"""A node's kubelet: its configuration and its command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

PORT: Final = 10250
CONFIG: Final = "/etc/kubernetes/kubelet.json"
STATIC_PODS: Final = "/etc/kubernetes/manifests"


@dataclass(frozen=True)
class Kubelet:
    node: str
    ip: IPv4Address
    runtime_endpoint: str
    cgroup_parent: str
    cluster_dns: IPv4Address
    ca: Path
    certificate: Path
    key: Path
    kubeconfig: Path
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    config: Mapping[str, object] = field(default_factory=dict[str, object])


def config(kubelet: Kubelet) -> str:
    """The KubeletConfiguration; the machine may have version 1 cgroups."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": str(kubelet.ip),
            "port": PORT,
            "healthzBindAddress": "127.0.0.1",
            "tlsCertFile": str(kubelet.certificate),
            "tlsPrivateKeyFile": str(kubelet.key),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(kubelet.ca)},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": kubelet.runtime_endpoint,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": kubelet.cgroup_parent,
            "cgroupsPerQOS": True,
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "clusterDomain": "cluster.local",
            "clusterDNS": [str(kubelet.cluster_dns)],
            "evictionHard": {},  # only the test ends its pods
            "imageGCHighThresholdPercent": 100,
            "fileCheckFrequency": "2s",
            "syncFrequency": "10s",
            "nodeStatusUpdateFrequency": "2s",
            "shutdownGracePeriod": "0s",
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
            "staticPodPath": STATIC_PODS,
            "registerNode": True,
            **kubelet.config,
        },
        indent=1,
    )


def argv(program: Path, kubelet: Kubelet) -> tuple[str, ...]:
    labels = ",".join(f"{key}={value}" for key, value in kubelet.labels.items())
    return (
        str(program),
        f"--config={CONFIG}",
        f"--kubeconfig={kubelet.kubeconfig}",
        f"--hostname-override={kubelet.node}",
        f"--node-ip={kubelet.ip}",
        *([f"--node-labels={labels}"] if labels else []),
        "--v=2",
    )
