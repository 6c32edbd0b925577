"""What the manager can be told. `partage up` says what differs from a default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from partage_base.daemon.settings import CommonSettings, Setting
from partage_base.keyring import KeyFolders
from partage_cli.machine.places import CONTAINERD_SOCKET, CRISHIM_SOCKET


class ManagerSettings(CommonSettings, frozen=True, kw_only=True):
    """Of the daemon that runs pods on a machine without Kubernetes."""

    runtime: Annotated[Path, Setting("Socket of crishim, by which all is created.")] = Path(f"/{CRISHIM_SOCKET}")
    containerd: Annotated[Path, Setting("Socket of containerd, into which archives of images are loaded.")] = Path(
        f"/{CONTAINERD_SOCKET}"
    )
    ctr: Annotated[str, Setting("Program of containerd that loads archives; without a folder it is on the PATH.")] = (
        "ctr"
    )
    signing_keys: Annotated[Path, Setting("Folder of the private key that allocations are signed with.")] = (
        KeyFolders.at_root(Path("/")).private
    )
    group: Annotated[
        str, Setting("Group that may ask the manager and is then as good as root; empty, the default, is root alone.")
    ] = ""
    simulated: Annotated[
        bool, Setting("The cards are simulated, which every command says: nothing is computed on them.")
    ] = False
    look_every_s: Annotated[
        float,
        Meta(ge=0.5, le=60),
        Setting("Seconds between looks at what the runtime has; what ends by itself is heard of at once."),
    ] = 5.0
