"""A node's containerd: its configuration, and its pods' addresses.

Pods use the standard bridge plugin, with one subnet for each node. Host ports use the portmap plugin, whose rules are
in the node's network namespace. There is no kube-proxy in the rig, so service addresses don't work.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from rig.errors import ComponentFailed
from rig.patience import patience_s

SOCKET: Final = "/run/containerd/containerd.sock"
CONFIG: Final = "/etc/containerd/config.toml"
CERTS: Final = "/etc/containerd/certs.d"
_CAP_SYS_RESOURCE: Final = 24
_VERSION: Final = re.compile(r"containerd \S+ v?(\d+)\.", re.ASCII)


@dataclass(frozen=True)
class Containerd:
    major: int
    runc: Path
    cni_plugins: Path
    pause: str


def major_of(program: Path) -> int:
    """The major version."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=patience_s())
    if found := _VERSION.match(done.stdout):
        return int(found[1])
    raise ComponentFailed(f"`{program} --version` names no version: {(done.stdout or done.stderr).strip()[:200]}")


def config(settings: Containerd) -> str:
    """The configuration in the format of that version; values that are not set are containerd's defaults."""
    return _format_2(settings) if settings.major == 1 else _format_3(settings)


_DAEMON: Final = f"""\
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
address = "{SOCKET}"
"""


def _format_3(settings: Containerd) -> str:
    return f"""\
version = 3
{_DAEMON}
[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{settings.pause}"

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "{CERTS}"

[plugins.'io.containerd.cri.v1.runtime']
{_of_containers()}
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{settings.cni_plugins}"]
conf_dir = "/etc/cni/net.d"
use_internal_loopback = true

{_runc("io.containerd.cri.v1.runtime", settings)}"""


def _format_2(settings: Containerd) -> str:
    return f"""\
version = 2
{_DAEMON}
[plugins.'io.containerd.grpc.v1.cri']
sandbox_image = "{settings.pause}"
{_of_containers()}
[plugins.'io.containerd.grpc.v1.cri'.cni]
bin_dir = "{settings.cni_plugins}"
conf_dir = "/etc/cni/net.d"

[plugins.'io.containerd.grpc.v1.cri'.containerd]
snapshotter = "overlayfs"

[plugins.'io.containerd.grpc.v1.cri'.registry]
config_path = "{CERTS}"

{_runc("io.containerd.grpc.v1.cri", settings)}"""


def _of_containers() -> str:
    return f"""\
disable_apparmor = {_toml(not Path("/sys/kernel/security/apparmor").exists())}
restrict_oom_score_adj = {_toml(not may_lower_oom_score())}
netns_mounts_under_state_dir = true
ignore_image_defined_volumes = false
"""


def _runc(plugin: str, settings: Containerd) -> str:
    return f"""\
[plugins.'{plugin}'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'{plugin}'.containerd.runtimes.runc.options]
BinaryName = "{settings.runc}"
SystemdCgroup = false
"""


def may_lower_oom_score() -> bool:
    """Whether this machine lets root lower OOM scores as kubelet requests; some sandboxes remove CAP_SYS_RESOURCE."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False


def _toml(value: object) -> str:
    return "true" if value else "false"


NETWORK: Final = "/etc/cni/net.d/10-partage.conflist"


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
