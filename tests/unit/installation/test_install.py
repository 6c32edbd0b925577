"""`partage node install` after a run that did not end, and what it says beforehand that it would do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from partage_cli.installation import preparation, switch
from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.host import Host
from partage_cli.installation.inspection import Site
from partage_cli.installation.journal import kept, read
from partage_cli.installation.places import UNITS
from partage_cli.installation.tree import OUR_UNITS, point, pointed
from support.trees import PROGRAM, a_tree
from unit.installation.made import Services, a_host

SITE: Final = Site(node="gpu-7", kubelet="kubelet.service", runtime="/run/x.sock", kubeconfig="", static_pods="")
OLD, NEW = "1.0-g1", "1.1-g2"


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A node that is fit, with a crishim that answers."""
    monkeypatch.setattr(switch, "look", lambda _host: SITE)
    monkeypatch.setattr(switch, "warnings", lambda _host, _site: ())
    monkeypatch.setattr(switch, "require_crishim", lambda _host: None)
    return a_host(tmp_path / "root")[0]


def tree(folder: Path, version: str) -> Path:
    programs = dict.fromkeys(("bin/partage-crishim", "bin/partage-broker"), PROGRAM)
    return a_tree(
        folder / version, version, {**programs, **{f"systemd/{unit}": version.encode() for unit in OUR_UNITS}}
    )


def install(host: Host, source: Path) -> None:
    with kept(host.root) as journal:
        switch.install(host, journal, source)


def begin(host: Host, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install, and be killed as soon as the link to the tree is there."""

    def killed(root: Path, version: str) -> None:
        point(root, version)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(preparation, "point", killed)
        with pytest.raises(Killed):
            install(host, source)


def in_force(host: Host) -> tuple[str, str, set[str]]:
    """By the journal, by the link and by the units."""
    units = {path.read_text() for path in host.path(UNITS).glob("partage-*.*") if path.is_file()}
    return read(host.root).version, pointed(host.root), units


def test_another_version_after_a_run_that_was_killed_is_installed_as_a_whole(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(host, tree(tmp_path, OLD), monkeypatch)
    shutil.rmtree(tmp_path / OLD)
    install(host, tree(tmp_path, NEW))
    assert in_force(host) == (NEW, NEW, {NEW})


def test_the_same_version_goes_on_from_wherever_its_tree_lies_now(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(host, tree(tmp_path, OLD), monkeypatch)
    (tmp_path / OLD).rename(tmp_path / "elsewhere")
    shutil.rmtree(host.path("opt/partage"))
    install(host, tmp_path / "elsewhere")
    assert in_force(host) == (OLD, OLD, {OLD})


def test_a_version_that_an_upgrade_put_in_force_is_not_stopped_by_its_own_install(host: Host, tmp_path: Path) -> None:
    install(host, tree(tmp_path, OLD))
    with kept(host.root) as journal:
        journal.take_version(NEW)
    assert isinstance(host.services, Services)
    host.services.told.clear()
    install(host, tree(tmp_path, NEW))
    assert not any(each.startswith("stop") for each in host.services.told)


def test_a_dry_run_says_of_an_installed_node_what_would_be_mended(host: Host, tmp_path: Path) -> None:
    source = tree(tmp_path, OLD)
    install(host, source)
    assert switch.to_install(host, read(host.root), source) == []
    unit = host.path(UNITS) / OUR_UNITS[0]
    unit.write_text("changed")
    assert [str(each) for each in switch.to_install(host, read(host.root), source)] == [f"write {unit}"]
    with pytest.raises(UnfitNode, match=f"version {OLD} is installed: `partage node upgrade` puts {NEW}"):
        switch.to_install(host, read(host.root), tree(tmp_path, NEW))
