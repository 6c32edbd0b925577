"""What of this machine decides whether a spec can pass. Each is looked at, none is assumed.

Where a condition does not hold, the specs that it excuses must pass.
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
    """Every condition by name, and whether it holds here, for a runtime that starts containers with this runc."""
    has_apparmor = _ENABLED.exists() and _ENABLED.read_text().startswith("Y")
    return {
        NO_APPARMOR: not has_apparmor,
        NO_PROFILES: has_apparmor and not _loads_profiles(),
        NO_IDMAP: not _maps_ids(runc),
    }


def _loads_profiles() -> bool:
    """Whether what critest does it with is there; it calls sudo, also as root."""
    return _PROFILES.exists() and bool(shutil.which("sudo")) and bool(shutil.which("apparmor_parser"))


def _maps_ids(runc: Path) -> bool:
    """As runc itself says; containerd offers user namespaces if it does."""
    done = subprocess.run([runc, "features"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineUnfit(f"`{runc} features` failed: {done.stderr.strip()}; runc must be 1.1 or newer")
    extensions = json.loads(done.stdout).get("linux", {}).get("mountExtensions", {})
    return bool(extensions.get("idmap", {}).get("enabled"))
