"""Conditions of this machine that determine whether a spec can pass. Each is probed, none is assumed.

If a condition does not hold, the specs that it excuses must pass.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

from rig.errors import MachineUnfit

NO_APPARMOR: Final = "no AppArmor"
NO_PROFILES: Final = "AppArmor, but no way to load profiles"
NO_IDMAP: Final = "runc without idmapped mounts"
CONDITIONS: Final = frozenset({NO_APPARMOR, NO_PROFILES, NO_IDMAP})

_ENABLED: Final = Path("/sys/module/apparmor/parameters/enabled")
_PROFILES: Final = Path("/sys/kernel/security/apparmor/profiles")


def probe(runc: Path) -> dict[str, bool]:
    """All conditions by name, and whether each holds here, for a runtime with this runc."""
    has_apparmor = _ENABLED.exists() and _ENABLED.read_text().startswith("Y")
    return {
        NO_APPARMOR: not has_apparmor,
        NO_PROFILES: has_apparmor and not _loads_profiles(),
        NO_IDMAP: not _maps_ids(runc),
    }


def _loads_profiles() -> bool:
    """Whether critest's tools for this exist; it calls sudo, even as root."""
    return _PROFILES.exists() and bool(shutil.which("sudo")) and bool(shutil.which("apparmor_parser"))


def _maps_ids(runc: Path) -> bool:
    """Whether runc supports it, by its own report; containerd then offers user namespaces."""
    done = subprocess.run([runc, "features"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineUnfit(f"`{runc} features` failed: {done.stderr.strip()}; runc must be 1.1 or newer")
    extensions = json.loads(done.stdout).get("linux", {}).get("mountExtensions", {})
    return bool(extensions.get("idmap", {}).get("enabled"))
