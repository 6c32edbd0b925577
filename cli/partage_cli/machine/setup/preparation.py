"""Decides which cards this machine shares, and installs what its services need; every step is idempotent.

The decision of an earlier `up` holds until its user changes it, so a second `up` changes nothing by itself.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_cli.machine.places import STATE
from partage_cli.machine.setup.cards import install_library, real_cards
from partage_cli.machine.setup.decision import Decision, read_decision, write_decision
from partage_cli.machine.setup.errors import Unfit

Say = Callable[[str], None]
USUAL_MODEL: Final = "h100"
_POD_RESOURCES: Final = "var/lib/kubelet/pod-resources/kubelet.sock"
_CONNECT_S: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """Options of the command line; None keeps the earlier decision, or else the default."""

    simulated: str | None = None
    cards: int | None = None


def require_fit(root: Path) -> None:
    """Raises `Unfit` if this machine can't be used."""
    if os.geteuid() != 0:
        raise Unfit("`partage up` starts daemons that are root's: run it as root")
    if (kubelet := _kubelet(root)) is not None:
        raise Unfit(
            f"{kubelet}: the cards of a node of Kubernetes are given by its scheduler, and two would give one card "
            "twice; install partage there by its manifests"
        )


def prepared(root: Path, wishes: Wishes, say: Say) -> Decision:
    """Prepare all but the services; `say` gets a line for each step that takes time or leaves files."""
    model, cards = _cards(root, wishes, read_decision(root))
    decision = Decision(simulated=model, cards=cards if model else 0)
    lay_out = _simulator() if model else None
    write_decision(root, decision)  # written first, so that `down` can undo the following steps even if they fail
    (root / STATE).mkdir(mode=0o755, parents=True, exist_ok=True)
    if lay_out is not None:
        lay_out(root, decision)
    say(f"preload library {install_library(root, decision)} is installed")
    return decision


def _simulator() -> Callable[[Path, Decision], None]:
    from partage_cli.machine.setup.simulation import simulate  # noqa: PLC0415  needs a distribution of its own

    return simulate


def _cards(root: Path, wishes: Wishes, before: Decision | None) -> tuple[str, int]:
    """The model to simulate, empty for real cards, and the number of simulated cards."""
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


def _kubelet(root: Path) -> str | None:
    """The kubelet of this machine; one in another mount namespace, as in a kind container, is another machine's."""
    own = Path("/proc/self/ns/mnt").readlink()
    for entry in Path("/proc").iterdir():
        try:
            is_kubelet = entry.name.isdecimal() and (entry / "comm").read_text() == "kubelet\n"
            if is_kubelet and (entry / "ns/mnt").readlink() == own:
                return f"a kubelet runs here, process {entry.name}"
        except OSError:  # the process ended meanwhile
            continue
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(_CONNECT_S)
        try:
            peer.connect(str(root / _POD_RESOURCES))
        except OSError:
            return None
    return f"a kubelet answers on {root / _POD_RESOURCES}"
