"""The status of this node: what is installed, kubelet's runtime, and whether allocations are honoured.

Kubelet's files are not among `altered`: rewriting them means restarting kubelet, which is the job of a switch with its
rollback. Of the tree only the units are compared; `partage node install` checks every file of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from partage_cli.doctor.daemons import age_of, is_fresh
from partage_cli.doctor.endpoint import Say, path_of
from partage_cli.doctor.local_node import LocalNode, Unseen, text_of
from partage_cli.installation import turn
from partage_cli.installation.errors import InstallationError, UnfitNode
from partage_cli.installation.inspection import Site, crishim_of
from partage_cli.installation.journal import Journal
from partage_cli.installation.kubelet import kubelet_of
from partage_cli.installation.places import CURRENT, TREES, UNITS, VERSION_BACK, WENT_BACK
from partage_cli.installation.preparation import texts_of, why_not_honoured
from partage_cli.installation.refusals import RUNTIMES
from partage_cli.installation.tree import other_units, pointed
from partage_plugins.api.places import KUBELET_SPOKE


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The output of `partage node status -o json`."""

    version: str | None
    endpoint: Literal["crishim", "containerd", "other", "unknown"]
    """The endpoint of the running kubelet."""
    switch: turn.State | None
    armed_until: str | None
    on_trial: bool
    steps: Mapping[str, str]
    in_force: bool
    why: str
    """Why it is not in force; empty if it is."""
    speaks_for_good: bool
    """Kubelet uses crishim, and will after its next start."""
    altered: tuple[str, ...] = ()
    """Files of the installation that are missing or differ."""


def status(root: Path, journal: Journal) -> Status:
    """The node's status; never fails for what it finds."""
    try:
        listen = str(crishim_of(root).listen)
        kubelet = kubelet_of(LocalNode(root=root, name=""))
    except UnfitNode as error:
        listen, now, wrong = "", None, [str(error)]
    else:
        now = kubelet.now.in_force
        wrong = list(_of_kubelet(now, kubelet.next.in_force, listen))
    reasons = [*_of_switch(root, journal), *wrong, *_of_crishim(root)]
    return Status(
        version=journal.version or None,
        endpoint=_kind(now, listen, journal.facts("look", Site)),
        switch=turn.state(root),
        armed_until=turn.armed_until(root) or None,
        on_trial=(root / VERSION_BACK).exists(),
        steps=journal.states,
        in_force=not reasons,
        why=reasons[0] if reasons else "",
        speaks_for_good=not wrong,
        altered=tuple(altered(root, journal)),
    )


def altered(root: Path, journal: Journal) -> Iterator[str]:
    """Their paths on the node; none while another version is tried, or partage is being removed."""
    is_changing = (root / VERSION_BACK).exists() or not {"upgrade", "uninstall"}.isdisjoint(journal.states)
    site = journal.facts("look", Site)
    if is_changing or site is None or not journal.version or not journal.is_done("units"):
        return
    if pointed(root) != journal.version:
        yield f"/{CURRENT}"
    try:
        texts = texts_of(root, root / TREES / journal.version, site)
    except InstallationError:
        yield f"/{TREES}/{journal.version}"
        return
    yield from (f"/{UNITS}/{name}" for name in other_units(root, texts))


def _of_switch(root: Path, journal: Journal) -> Iterator[str]:
    if not journal.version:
        yield "partage is not installed on this node: `partage node install`"
        return
    went_back = text_of(root / WENT_BACK)
    if not isinstance(went_back, Unseen):
        yield went_back.strip()
    match turn.state(root):
        case "confirmed":
            return
        case "armed":
            yield f"the switch is not confirmed yet; kubelet gets its runtime back at {turn.armed_until(root)}"
        case "turning-back":
            yield "the switch is going back"
        case "turned-back":
            yield "the switch went back: kubelet has its container runtime; `partage node switch-on` tries again"
        case None:
            yield "kubelet was not switched to crishim: `partage node switch-on`"


def _of_kubelet(now: Say | None, following: Say | None, listen: str) -> Iterator[str]:
    if now is None or following is None:
        yield "it cannot be read which runtime kubelet is given; ask as root"
    elif path_of(now.endpoint) != path_of(listen):
        yield (
            f"kubelet speaks to {now.endpoint}, as {now.where} says: kubeadm or someone else wrote that since; "
            "`partage node switch-on` again"
        )
    elif path_of(following.endpoint) != path_of(listen):
        yield (
            f"kubelet will speak to {following.endpoint} when it starts again, as {following.where} says: kubeadm or "
            "someone else wrote that since; `partage node switch-on` again"
        )


def _of_crishim(root: Path) -> Iterator[str]:
    age_s = age_of(root / KUBELET_SPOKE)
    if isinstance(age_s, Unseen) or not is_fresh(age_s):
        yield "kubelet has not spoken to crishim lately; see `systemctl status kubelet partage-crishim`"
    if why := why_not_honoured(root):
        yield f"{why}; see `systemctl status partage-crishim`"


def _kind(now: Say | None, listen: str, site: Site | None) -> Literal["crishim", "containerd", "other", "unknown"]:
    if now is None:
        return "unknown"
    path = path_of(now.endpoint)
    if path == path_of(listen):
        return "crishim"
    return "containerd" if path in {*RUNTIMES, site.runtime if site else ""} else "other"
