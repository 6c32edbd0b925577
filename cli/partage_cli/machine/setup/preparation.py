"""Decides what this machine is, and writes all that its services need; each step may be done again.

What an earlier `up` decided holds until its user says otherwise, so a second `up` changes nothing by itself.
"""

from __future__ import annotations

import grp
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_base.files import write_whole
from partage_base.keyring import KeyFolders, add_pair, overview
from partage_cli.machine.places import (
    CONTAINERD_CONFIG,
    CONTAINERD_STATE,
    DRIVER,
    LOGS,
    REGISTRIES,
    VOLUMES,
)
from partage_cli.machine.setup.cards import Furniture, has_nvidias_spec, real_cards
from partage_cli.machine.setup.containerd import Machine, chosen_attach, config
from partage_cli.machine.setup.decision import Decision, chosen_proxies, read_decision, write_decision
from partage_cli.machine.setup.errors import Unfit
from partage_cli.machine.setup.network import CONFLIST, chosen_network, conflist, routes_of
from partage_cli.machine.setup.programs import Finder

Say = Callable[[str], None]
USUAL_MODEL: Final = "h100"
_POD_RESOURCES: Final = "var/lib/kubelet/pod-resources/kubelet.sock"
_CAP_SYS_RESOURCE: Final = 24
_CONNECT_S: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What was said on the command line; None: as before, or as is usual."""

    simulated: str | None = None
    cards: int | None = None
    network: str | None = None
    group: str | None = None
    containerd: Path | None = None


def require_fit(root: Path) -> None:
    """Raises `Unfit` where this machine can't be used."""
    if os.geteuid() != 0:
        raise Unfit("`partage up` makes mounts, namespaces and network devices: run it as root")
    if (kubelet := _kubelet(root)) is not None:
        raise Unfit(
            f"{kubelet}: the cards of a node of Kubernetes are given by its scheduler, and two would give one card "
            "twice; install partage there by its manifests"
        )


def prepared(root: Path, wishes: Wishes, say: Say) -> Decision:
    """All but the services; tells each step that takes time or leaves something."""
    before = read_decision(root)
    finder = Finder(root, say)
    found = finder.find(_containerd(wishes, before))
    furniture = Furniture(root, finder)
    model, cards = _cards(root, wishes, before)
    network = wishes.network or (before and before.network) or None
    routes = routes_of(Path("/proc/net/route").read_text())
    version, has_spec = finder.version(found.programs.containerd), has_nvidias_spec(root, say)
    decision = Decision(
        simulated=model,
        cards=cards if model else 0,
        network=str(chosen_network(network, routes)),
        group=_group(wishes.group if wishes.group is not None else before.group if before else ""),
        attach=chosen_attach(simulated=bool(model), version=version, has_spec=has_spec),
        programs=found.programs,
        proxies=chosen_proxies(os.environ, before.proxies if before else {}),
        made_keys=before.made_keys if before else (),
        installed=tuple(sorted({*(before.installed if before else ()), *found.installed})),
    )
    write_decision(root, decision)  # so that a `down` knows of all that follows, however far it comes
    _make_folders(root)
    _write(root / CONTAINERD_CONFIG, config(root, found.programs, _machine(attaches_by_cdi=decision.attach == "auto")))
    _write(root / CONFLIST, conflist(chosen_network(decision.network, routes), root))
    if model:
        furniture.simulate(decision)
    version = furniture.library(root / DRIVER if model else root)
    say(f"preload library {version} is installed")
    decision = replace(
        decision,
        made_keys=(*decision.made_keys, *_keys(root, say)),
        installed=tuple(sorted({*decision.installed, *finder.installed})),
    )
    write_decision(root, decision)
    return decision


def _containerd(wishes: Wishes, before: Decision | None) -> Path | None:
    if wishes.containerd is not None or before is None:
        return wishes.containerd
    known = Path(before.programs.containerd)
    return known if known.exists() else None


def _cards(root: Path, wishes: Wishes, before: Decision | None) -> tuple[str, int]:
    """The model to simulate, empty for real cards; and how many are simulated."""
    count = wishes.cards or (before.cards if before and before.cards else 1)
    if wishes.simulated is not None:
        return wishes.simulated, count
    if before is not None and before.simulated:
        return before.simulated, count
    if real_cards(root):
        if wishes.cards is not None:
            raise Unfit("--cards is for simulated cards, and this machine has real ones; say --simulated with it")
        return "", 0
    return USUAL_MODEL, count


def _group(name: str) -> str:
    if name:
        try:
            grp.getgrnam(name)
        except KeyError:
            raise Unfit(f"there is no group {name!r:.80}; make it with `groupadd`, or name another") from None
    return name


def _make_folders(root: Path) -> None:
    for name, mode in ((VOLUMES, 0o711), (LOGS, 0o755), (REGISTRIES, 0o755), (CONTAINERD_STATE, 0o711)):
        (root / name).mkdir(mode=mode, parents=True, exist_ok=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_whole(path, text.encode(), mode=0o644)


def _keys(root: Path, say: Say) -> tuple[str, ...]:
    """A pair where none signs."""
    folders = KeyFolders.at_root(root)
    if overview(folders).signing is not None:
        return ()
    added = add_pair(folders, Ed25519PrivateKey.generate())
    say(f"key {added.id} signs what containers of this machine are given")
    return (str(added.id),)


def _machine(*, attaches_by_cdi: bool) -> Machine:
    lines = Path("/proc/self/status").read_text().splitlines()
    capabilities = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return Machine(
        has_apparmor=Path("/sys/kernel/security/apparmor").exists(),
        may_lower_oom_score=bool(capabilities >> _CAP_SYS_RESOURCE & 1),
        attaches_by_cdi=attaches_by_cdi,
    )


def _kubelet(root: Path) -> str | None:
    """Which kubelet runs here; one in a container, as kind has them, is another machine's."""
    own = Path("/proc/self/ns/mnt").readlink()
    for entry in Path("/proc").iterdir():
        try:
            is_kubelet = entry.name.isdecimal() and (entry / "comm").read_text() == "kubelet\n"
            if is_kubelet and (entry / "ns/mnt").readlink() == own:
                return f"a kubelet runs here, process {entry.name}"
        except OSError:  # it ended meanwhile
            continue
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(_CONNECT_S)
        try:
            peer.connect(str(root / _POD_RESOURCES))
        except OSError:
            return None
    return f"a kubelet answers on {root / _POD_RESOURCES}"
