"""Paths of a machine without Kubernetes, below its root, in addition to the paths that every node has.

All that `partage up` creates is in two folders of our own and one file, so removing them removes everything.
"""

from __future__ import annotations

from typing import Final

STATE: Final = "var/lib/partage/machine"
"""Survives a reboot."""
RUN: Final = "run/partage/machine"
"""Cleared by a reboot, as all of /run."""

LIBRARY: Final = f"{STATE}/library"
"""Folder of the preload library."""
DRIVER: Final = f"{STATE}/driver"
"""Folder of the simulated driver."""
SIMGPUD: Final = f"{DRIVER}/usr/bin/simgpud"
"""The simulated driver's daemon, where `partage_simgpu` installs it."""
MACHINE_FILE: Final = "etc/partage/machine.toml"
"""The decision of `partage up`."""
HOLD: Final = f"{RUN}/hold"
"""Lock file of the process that sets up, supervises or takes down the machine."""
