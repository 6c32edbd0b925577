"""Where the parts of one node meet: files below its root, written without the first slash.

Each is written by one part and read by others, which never import each other.
"""

from __future__ import annotations

from typing import Final

INVENTORY_FILE: Final = "run/partage/inventory.json"
"""What exists on the node: written by the advertiser, read by crishim and by people's tools."""
ADVERTISER_LOCK: Final = "run/partage/advertiser/lock"
"""Held by the advertiser that runs."""
PAUSE_FOLDER: Final = "run/partage/advertiser/pause"
"""While any file is in it the driver is let go; the first line of the file says why."""
KUBELET_SPOKE: Final = "run/partage/crishim/kubelet-spoke"
"""Its time is when kubelet last asked crishim for the runtime's status, which it does every 5 s."""
CRISHIM_CONDITION: Final = "run/partage/crishim/condition.json"
"""How crishim is, by itself: written again at least every 5 s. Old or absent, crishim is not in force."""
CDI_FOLDER: Final = "var/run/cdi"
"""Where we put specs of CDI devices, which every runtime that knows CDI reads."""
CLAIMS_FOLDER: Final = "run/partage/dra/claims"
"""What the DRA driver has prepared, a file for each claim."""
DRA_SOCKET: Final = "var/lib/kubelet/plugins/gpu.partage.dev/dra.sock"
"""Where the DRA driver answers kubelet."""
DRA_REGISTRATION: Final = "var/lib/kubelet/plugins_registry/gpu.partage.dev-reg.sock"
"""Where kubelet finds it."""
BROKER_ALIVE: Final = "run/partage/broker/alive"
"""The broker touches it at least every 5 s."""
OCI_SOCKET: Final = "run/partage/oci.sock"
"""Where the agent answers `partage-oci`; only root may connect."""
ENGINES_FOLDER: Final = "run/partage/oci"
"""For which containers of engines such as Docker the agent holds room, a file for each."""
RESIZES_FOLDER: Final = "run/partage/resizes"
"""Allocations that changed while their pods ran, a file for each: written by the advertiser, verified by crishim."""
BROKER_SOCKET: Final = "run/partage/broker.sock"
"""Where root asks the broker, a line of JSON each way."""
