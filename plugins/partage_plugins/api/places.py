"""Files and sockets by which the components of one node communicate: paths below its root, without the leading slash.

Each is written by one component and read by others, which never import each other.
"""

from __future__ import annotations

from typing import Final

INVENTORY_FILE: Final = "run/partage/inventory.json"
"""The node's devices: written by the advertiser, read by crishim and by command-line tools."""
ADVERTISER_LOCK: Final = "run/partage/advertiser/lock"
"""Lock file, held by the running advertiser."""
PAUSE_FOLDER: Final = "run/partage/advertiser/pause"
"""While it contains any file, the driver is released; the file's first line is the reason."""
KUBELET_SPOKE: Final = "run/partage/crishim/kubelet-spoke"
"""Its modification time is when kubelet last called crishim for the runtime's status, which it does every 5 s."""
CRISHIM_CONDITION: Final = "run/partage/crishim/condition.json"
"""crishim's own condition, rewritten at least every 5 s. If it is old or absent, crishim is not in force."""
CDI_FOLDER: Final = "var/run/cdi"
"""Our CDI specs, in a folder that every runtime with CDI support reads."""
CLAIMS_FOLDER: Final = "run/partage/dra/claims"
"""The claims that the DRA driver has prepared, one file each."""
DRA_SOCKET: Final = "var/lib/kubelet/plugins/gpu.partage.dev/dra.sock"
"""The DRA driver's socket, called by kubelet."""
DRA_REGISTRATION: Final = "var/lib/kubelet/plugins_registry/gpu.partage.dev-reg.sock"
"""The DRA driver's registration socket, discovered by kubelet."""
SUSPENDED_FILE: Final = "run/partage/crishim/suspended.json"
"""What became of pods that a signed allocation suspends, by uid: written by crishim, published by the advertiser."""
BROKER_ALIVE: Final = "run/partage/broker/alive"
"""Touched by the broker at least every 5 s."""
OCI_SOCKET: Final = "run/partage/oci.sock"
"""The agent's socket for `partage-oci`; only root may connect."""
ENGINES_FOLDER: Final = "run/partage/oci"
"""Containers of engines such as Docker for which the agent holds resources, one file each."""
RESIZES_FOLDER: Final = "run/partage/resizes"
"""Allocations that changed while their pods ran, one file each: written by the advertiser, verified by crishim."""
BROKER_SOCKET: Final = "run/partage/broker.sock"
"""The broker's control socket for root: one line of JSON in each direction."""
