"""Where the parts of one machine meet, below its root, beside the places that every node has.

All that `partage up` makes lies in two folders of our own and one file, so that taking it back is to remove them.
"""

from __future__ import annotations

from typing import Final

STATE: Final = "var/lib/partage/machine"
"""Outlives a boot."""
RUN: Final = "run/partage/machine"
"""Gone after a boot, as all that runs is."""

LIBRARY: Final = f"{STATE}/library"
"""Of the preload library."""
DRIVER: Final = f"{STATE}/driver"
"""The simulated one."""
SIMGPUD: Final = f"{DRIVER}/usr/bin/simgpud"
"""Its daemon, where `partage_simgpu` lays it."""
MACHINE_FILE: Final = "etc/partage/machine.toml"
"""What `partage up` decided."""
HOLD: Final = f"{RUN}/hold"
"""Locked by who sets the machine up, supervises it, or takes it down."""
