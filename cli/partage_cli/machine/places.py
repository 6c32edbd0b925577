"""Where the parts of one machine meet, below its root, beside the places that every node has.

All that `partage up` makes lies in three folders of our own, so that taking it back is to remove them.
"""

from __future__ import annotations

from typing import Final

STATE: Final = "var/lib/partage/machine"
"""Outlives a boot: images, programs, logs, volumes, the simulated driver."""
RUN: Final = "run/partage/machine"
"""Gone after a boot, as all that runs is."""

CONTAINERD_ROOT: Final = f"{STATE}/containerd"
CONTAINERD_STATE: Final = f"{RUN}/containerd"
CONTAINERD_SOCKET: Final = f"{RUN}/containerd.sock"
CONTAINERD_CONFIG: Final = f"{STATE}/containerd.toml"
CONTAINERD_LOG: Final = f"{STATE}/containerd.log"
RUNC_ROOT: Final = f"{RUN}/runc"
CRISHIM_SOCKET: Final = "run/partage/crishim.sock"
REGISTRIES: Final = "etc/partage/certs.d"
"""How registries are reached, as containerd's `hosts.toml` says it."""

PROGRAMS: Final = f"{STATE}/programs"
"""Of Debian's packages that are unpacked and not installed."""
LIBRARY: Final = f"{STATE}/library"
"""Of the preload library."""
DRIVER: Final = f"{STATE}/driver"
"""The simulated one."""
LOGS: Final = f"{STATE}/logs"
"""Of containers: a folder for each pod."""
VOLUMES: Final = f"{STATE}/volumes"

NETWORKS: Final = f"{STATE}/networks"
"""CNI's configuration."""
ADDRESSES: Final = f"{RUN}/addresses"
"""Which container has which address in the bridge's network."""
BRIDGE: Final = "partage-br0"

MACHINE_FILE: Final = "etc/partage/machine.toml"
"""What `partage up` decided."""
MANAGER_LOCK: Final = f"{RUN}/manager.lock"
"""Held by the manager that runs."""
HOLD: Final = f"{RUN}/hold"
"""Locked by who sets the machine up, supervises it, or takes it down."""
