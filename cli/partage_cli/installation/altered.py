"""Which files of the installation a node has otherwise than they were installed, or not at all. Changes nothing.

Kubelet's files are not among them: to write those means to restart kubelet, which is for a switch with its way back.
Of the tree only its units are compared; `partage node install` looks at every file of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from partage_cli.installation.errors import InstallationError
from partage_cli.installation.host import Host
from partage_cli.installation.journal import Journal
from partage_cli.installation.look import Site
from partage_cli.installation.places import CURRENT, TREES, UNITS
from partage_cli.installation.preparation import texts_of
from partage_cli.installation.services import Systemctl
from partage_cli.installation.tree import other_units, pointed
from partage_cli.installation.versions.places import VERSION_BACK


def altered(root: Path, journal: Journal) -> tuple[str, ...]:
    """Their paths on the node; none while another version is tried, or all is taken out."""
    is_changing = (root / VERSION_BACK).exists() or not {"upgrade", "uninstall"}.isdisjoint(journal.states)
    site = journal.facts("look", Site)
    if is_changing or site is None or not journal.version or not journal.is_done("units"):
        return ()
    return tuple(_altered(Host(root, Systemctl(), lambda _line: None), journal.version, site))


def _altered(host: Host, version: str, site: Site) -> Iterator[str]:
    if pointed(host) != version:
        yield f"/{CURRENT}"
    try:
        texts = texts_of(host, host.path(TREES) / version, site)
    except InstallationError:
        yield f"/{TREES}/{version}"
        return
    yield from (f"/{UNITS}/{name}" for name in other_units(host, texts))
