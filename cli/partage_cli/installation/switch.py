"""Switches a node on and off: runs the steps in order, and rolls back on any error.

A run that finds an earlier one half done rolls back first, by the same script as the timer, and then begins with the
first step. So there is only one way forward and one way back.
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
from partage_cli.installation.canary import remove_static, require_room
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
from partage_cli.installation.inspection import Site, look, warnings
from partage_cli.installation.journal import Change, Journal, Step, carry_out, take_back
from partage_cli.installation.nodes import why_not_ready
from partage_cli.installation.places import WAY_BACK
from partage_cli.installation.preparation import Units, Unpack, Unpacked, require_crishim
from partage_cli.installation.programs import SHOWN, run
from partage_cli.installation.status import status
from partage_cli.installation.tree import version_of
from partage_plugins.errors import PartageError

AFTER_S: Final = 120.0
"""Time limit of a switch, after which it is rolled back."""
_SCRIPT_WITHIN_S: Final = 60.0
_BACK_WITHIN_S: Final = 60.0
_AGAIN_S: Final = 0.5


def install(host: Host, journal: Journal, tree: Path) -> None:
    """Installs up to a crishim that answers; does not touch kubelet. Raises `InstallationError`."""
    version = _require_same_version(journal, tree)
    if turn.state(host.root) != "confirmed":
        go_back(host, journal)
        _look_again(host, journal)
    steps, begun = _installation(tree, _site(journal)), journal.facts("unpack", Unpacked)
    if not journal.version and begun is not None and begun.version != version:  # by a run that did not end
        take_back(steps, host, journal)
    carry_out(steps, host, journal, again=True)
    require_crishim(host)
    journal.take_version(version)


def to_install(host: Host, journal: Journal, tree: Path) -> list[Change]:
    _require_same_version(journal, tree)
    site = journal.facts("look", Site) or look(host)
    return [change for step in _installation(tree, site) for change in step.plan(host).changes]


def _require_same_version(journal: Journal, tree: Path) -> str:
    """The tree's version; raises `UnfitNode` if another one is installed."""
    version = version_of(tree)
    if journal.version not in {"", version}:
        raise UnfitNode(f"version {journal.version} is installed: `partage node upgrade` puts {version} in its place")
    return version


def switch_on(host: Host, journal: Journal, *, kubeconfig: Path | None, after_s: float) -> None:
    """Raises `TurnedBack` after a rollback, else the error that came before kubelet was touched."""
    if not journal.is_done("units"):
        raise UnfitNode("partage is not installed on this node: `partage node install` first")
    if _settled(host, journal):
        host.say("this node is switched on already")
        return
    go_back(host, journal)
    site = _look_again(host, journal)
    require_crishim(host)
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
        except OSError as second:  # such as a full disk: the next run repairs the journal
            host.say(f"{second}; the journal does not tell that the switch went back")
        _wait_back(host, site, since)
        raise TurnedBack(f"{error}; kubelet has its container runtime back, as before") from error


def to_switch_on(host: Host, *, after_s: float) -> list[Change]:
    site = look(host)
    files = saved_files(host)
    steps = [Save(), *_conversion(site, files, kubeconfig=None, after_s=after_s)]
    return [change for step in steps for change in step.plan(host).changes]


def switch_off(host: Host, journal: Journal) -> None:
    """Gives kubelet its container runtime back; containers keep running."""
    if "save" not in journal.states and turn.state(host.root) is None:
        host.say("this node is not switched on")
        return
    site, since = _site(journal), datetime.now(UTC)
    go_back(host, journal)
    turn.clear(host.root)
    _wait_back(host, site, since)


def take_everything_back(host: Host, journal: Journal) -> None:
    """Undoes everything since `install`, but for the trees; kubelet uses its runtime, and the journal is empty."""
    switch_off(host, journal)
    site = journal.facts("look", Site)
    if site is not None:
        nowhere = Path(os.devnull)  # the journal alone has what must be undone
        take_back(_installation(nowhere, site), host, journal)
        journal.forget("look")
    journal.take_version("")


def to_switch_off(journal: Journal) -> list[Change]:
    site, files = journal.facts("look", Site), _files(journal)
    if site is None or not files:
        return []
    changes = [Change("restore" if each.saved else "remove", each.path) for each in files]
    return [*changes, Change("restart", site.kubelet)]


def go_back(host: Host, journal: Journal) -> None:
    """Rolls back to before the first step, from any state that an earlier run left; restarts kubelet if necessary."""
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


def _look_again(host: Host, journal: Journal) -> Site:
    """Refuses an unfit node, and prints warnings."""
    site = look(host)
    journal.done("look", site)
    for warning in warnings(host, site):
        host.say(warning)
    return site


def _settled(host: Host, journal: Journal) -> bool:
    """Whether the switch is on and stays so; completes a run that died after the confirmation."""
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
    """Runs the script; if it fails here, its timer runs it again."""
    path = host.path(WAY_BACK)
    try:
        done = run("/bin/sh", str(path), within_s=_SCRIPT_WITHIN_S)
    except StepFailed as error:
        raise StepFailed(f"{error}; its timer tries again") from None
    if done.returncode:
        raise StepFailed(f"{path} failed, and its timer tries again: {done.stderr.strip()[-SHOWN:]}")


def _wait_back(host: Host, site: Site, since: datetime) -> None:
    """Waits until kubelet has reported the node as ready since then; prints a message if that takes too long."""
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
