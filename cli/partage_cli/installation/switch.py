"""Switches a node on and off: the steps in their order, and back again whatever happens between.

A run that finds an earlier one half done goes back first, by the same script as the timer, and then begins at its
first step: so there is one way there and one way back.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from partage_base.kube.errors import KubeError
from partage_cli.installation import turn
from partage_cli.installation.canary import remove_static
from partage_cli.installation.confirmation import Confirm
from partage_cli.installation.conversion import (
    Arm,
    Endpoint,
    Save,
    SavedFile,
    SavedFiles,
    disarm,
    saved_files,
)
from partage_cli.installation.errors import StepFailed, TurnedBack, UnfitNode
from partage_cli.installation.host import Host, api_of
from partage_cli.installation.journal import Journal
from partage_cli.installation.look import Look, Site, look
from partage_cli.installation.nodes import require_room, why_not_ready
from partage_cli.installation.places import WAY_BACK
from partage_cli.installation.preparation import Units, Unpack, require_crishim
from partage_cli.installation.programs import SHOWN, run
from partage_cli.installation.status import status
from partage_cli.installation.steps import Change, Step, carry_out, foreseen, take_back
from partage_cli.installation.tree import version_of
from partage_plugins.errors import PartageError

AFTER_S: Final = 120.0
"""So long a switch may take before it goes back by itself."""
_SCRIPT_WITHIN_S: Final = 60.0
_BACK_WITHIN_S: Final = 60.0
_AGAIN_S: Final = 0.5


def install(host: Host, journal: Journal, tree: Path) -> None:
    """Up to a crishim that answers; kubelet is not touched. Raises `InstallationError`."""
    version = version_of(tree)
    if journal.version not in {"", version}:
        raise UnfitNode(f"version {journal.version} is installed: `partage node upgrade` puts {version} in its place")
    is_on = turn.state(host.root) == "confirmed"
    if not is_on:
        go_back(host, journal)
    carry_out([Look()], host, journal, again=not is_on)
    carry_out(_installation(tree, _site(journal)), host, journal, again=True)
    require_crishim(host)
    journal.take_version(version)


def to_install(host: Host, journal: Journal, tree: Path) -> list[Change]:
    site = journal.facts("look", Site) or look(host)
    return foreseen(_installation(tree, site), host, journal)


def switch_on(host: Host, journal: Journal, *, kubeconfig: Path | None, after_s: float) -> None:
    """Raises `TurnedBack` where kubelet was given its runtime back, else what kept it from being touched."""
    if not journal.is_done("units"):
        raise UnfitNode("partage is not installed on this node: `partage node install` first")
    if _settled(host, journal):
        host.say("this node is switched on already")
        return
    go_back(host, journal)
    carry_out([Look()], host, journal, again=True)
    require_crishim(host)
    site = _site(journal)
    if not site.static_pods and kubeconfig is None:
        raise UnfitNode(
            "kubelet takes no static pods, so a pod that tries the node must be made by the API server: "
            "name a kubeconfig that may make pods in kube-system by --kubeconfig"
        )
    asyncio.run(require_room(host, site))
    carry_out([Save()], host, journal)
    steps = _conversion(site, _files(journal), kubeconfig=kubeconfig, after_s=after_s)
    try:
        carry_out(steps, host, journal)
    except (PartageError, OSError) as error:
        since = datetime.now(UTC)
        try:
            go_back(host, journal)
        except OSError as second:  # such as a full disk: the journal is put right by the next run
            host.say(f"{second}; the journal does not tell that the switch went back")
        _wait_back(host, site, since)
        raise TurnedBack(f"{error}; kubelet has its container runtime back, as before") from error


def to_switch_on(host: Host, *, after_s: float) -> list[Change]:
    site = look(host)
    files = saved_files(host)
    steps = [Save(), *_conversion(site, files, kubeconfig=None, after_s=after_s)]
    return [change for step in steps for change in step.plan(host).changes]


def switch_off(host: Host, journal: Journal) -> None:
    """Kubelet gets its container runtime back; containers go on."""
    if "save" not in journal.states and turn.state(host.root) is None:
        host.say("this node is not switched on")
        return
    site, since = _site(journal), datetime.now(UTC)
    go_back(host, journal)
    turn.clear(host.root)
    _wait_back(host, site, since)


def take_everything_back(host: Host, journal: Journal) -> None:
    """To before `install`, but for the trees; kubelet speaks to its runtime, and nothing is left in the journal."""
    switch_off(host, journal)
    site = journal.facts("look", Site)
    if site is not None:
        nowhere = Path(os.devnull)  # what is taken back is known by the journal alone
        take_back([Look(), Unpack(nowhere), Units(nowhere, site)], host, journal)
    turn.remove(host.root)
    journal.take_version("")


def to_switch_off(journal: Journal) -> list[Change]:
    site, files = journal.facts("look", Site), _files(journal)
    if site is None or not files:
        return []
    changes = [Change("restore" if each.saved else "remove", each.path) for each in files]
    return [*changes, Change("restart", site.kubelet)]


def go_back(host: Host, journal: Journal) -> None:
    """To before the first step of the switch, from wherever an earlier run ended; kubelet is restarted if it must."""
    if turn.state(host.root) in {"armed", "turning-back"}:
        _run_way_back(host)
    if turn.state(host.root) == "turned-back":
        disarm(host, _files(journal))
        for name in ("confirm", "endpoint"):  # the script has undone them
            journal.forget(name)
    site = journal.facts("look", Site)
    if site is not None:
        steps = [Save(), *_conversion(site, _files(journal), kubeconfig=None, after_s=AFTER_S)]
        take_back(steps, host, journal)


def _settled(host: Host, journal: Journal) -> bool:
    """Whether it is switched on and stays so; a run that died after the confirmation is finished."""
    if turn.state(host.root) != "confirmed":
        return False
    now = status(host.root, journal)
    if not now.speaks_for_good:
        host.say(f"{now.why}; the switch is done again")
        return False
    remove_static(host, _site(journal))
    disarm(host, _files(journal))
    if not journal.is_done("confirm"):
        journal.done("confirm", {})
    return True


def _installation(tree: Path, site: Site) -> list[Step[Any]]:
    return [Unpack(tree), Units(tree, site)]


def _conversion(
    site: Site, files: tuple[SavedFile, ...], *, kubeconfig: Path | None, after_s: float
) -> Sequence[Step[Any]]:
    return (
        Arm(site, files, after_s=after_s),
        Endpoint(site, files),
        Confirm(site, files, kubeconfig, after_s=after_s),
    )


def _site(journal: Journal) -> Site:
    site = journal.facts("look", Site)
    if site is None:
        raise UnfitNode("partage is not installed on this node: `partage node install` first")
    return site


def _files(journal: Journal) -> tuple[SavedFile, ...]:
    return (journal.facts("save", SavedFiles) or SavedFiles()).files


def _run_way_back(host: Host) -> None:
    """The timer runs it too, if it fails here."""
    path = host.path(WAY_BACK)
    try:
        done = run("/bin/sh", str(path), within_s=_SCRIPT_WITHIN_S)
    except StepFailed as error:
        raise StepFailed(f"{error}; its timer tries again") from None
    if done.returncode:
        raise StepFailed(f"{path} failed, and its timer tries again: {done.stderr.strip()[-SHOWN:]}")


def _wait_back(host: Host, site: Site, since: datetime) -> None:
    """Until kubelet has said since then that the node is ready; where it takes longer, that is said."""
    until = time.monotonic() + _BACK_WITHIN_S
    while (why := asyncio.run(_why_not_back(host, site, since.replace(microsecond=0)))) is not None:
        if time.monotonic() >= until:
            host.say(f"after {_BACK_WITHIN_S:g} s: {why}; see `journalctl -u {site.kubelet}`")
            return
        time.sleep(_AGAIN_S)


async def _why_not_back(host: Host, site: Site, since: datetime) -> str | None:
    try:
        async with api_of(host, site.kubeconfig) as server:
            return await why_not_ready(server, site.node, since)
    except (KubeError, UnfitNode) as error:
        return str(error)
