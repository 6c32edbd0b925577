"""Partage is removed from a node completely, even if the command is killed at any point."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from partage_cli.installation import journal
from partage_cli.installation.errors import PodsStay
from partage_cli.installation.host import Host
from partage_cli.installation.uninstall import uninstall
from unit.installation.made import Services

UNITS = "etc/systemd/system"
LIMITS = "run/partage/state/containers/0123.json"


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Node:
    root: Path
    services: Services = field(default_factory=Services)
    said: list[str] = field(default_factory=list[str])
    drains: int = 0

    def uninstall(self, *, forced: bool = False, leave: Callable[[], None] = lambda: None) -> None:
        """Runs the command, including the script that it becomes at its end."""

        def left() -> None:
            self.drains += 1
            leave()

        subprocess.run(["/bin/sh", str(self.removed(left, forced=forced))], check=True)

    def removed(self, leave: Callable[[], None], *, forced: bool = False) -> Path:
        """Removes all but the last, and returns the script that removes the rest."""
        host = Host(self.root, self.services, self.said.append)
        with journal.kept(self.root) as kept:
            return uninstall(host, kept, leave=leave, forced=forced)

    @property
    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    for folder in ("usr/local/lib", UNITS, "var/lib", "var/run/cdi", "run", "opt", "etc/partage/keys.d"):
        (tmp_path / folder).mkdir(parents=True)
    return Node(tmp_path)


def install(node: Node) -> None:
    for path, text in {
        "opt/partage/1.0-g1/VERSION": "1.0-g1",
        "opt/partage/1.0-g1/bin/partage": "a program",
        f"{UNITS}/partage-advertiser.service": "[Service]",
        "usr/local/lib/partage/1-aa/libcuda.so.1": "old",
        "usr/local/lib/partage/1-bb/libcuda.so.1": "new",
        "usr/local/lib/partage/libpartage-page.so": "the broker's",
        "run/partage/inventory.json": "{}",
        "var/run/cdi/partage.dev-gpu.json": "{}",
        LIMITS: '{"library":"/usr/local/lib/partage/1-aa"}',
        "var/lib/partage/node/saved/config.yaml": "",
    }.items():
        (node.root / path).parent.mkdir(parents=True, exist_ok=True)
        (node.root / path).write_text(text)
    (node.root / "opt/partage/current").symlink_to("1.0-g1")
    (node.root / "usr/local/lib/partage/current").symlink_to("1-bb")


def test_nothing_is_left_and_what_an_operator_wrote_stays(node: Node) -> None:
    before = node.files
    install(node)
    node.uninstall()
    assert node.files == before
    assert node.drains == 1
    assert "stop partage-advertiser.service" in node.services.told


def test_libraries_go_from_where_the_node_has_them(node: Node) -> None:
    (node.root / "etc/partage/partage.toml").write_text('[broker]\nlibrary_folder = "/opt/libraries"\n')
    before = node.files
    install(node)
    (node.root / "usr/local/lib/partage").rename(node.root / "opt/libraries")
    node.uninstall()
    assert node.files == before


def test_nothing_is_touched_while_pods_stay(node: Node) -> None:
    install(node)
    before = node.files

    def stay() -> None:
        raise PodsStay("team/train-0 stays")

    with pytest.raises(PodsStay):
        node.uninstall(leave=stay)
    assert [each for each in node.files if not each.endswith("/lock")] == before
    assert node.services.told == []


def test_forced_it_asks_no_pod_and_leaves_the_library_that_a_container_has(node: Node) -> None:
    before = node.files
    install(node)
    node.uninstall(forced=True)
    kept = ["usr/local/lib/partage", "usr/local/lib/partage/1-aa", "usr/local/lib/partage/1-aa/libcuda.so.1"]
    assert sorted(set(node.files) - set(before)) == kept
    assert node.drains == 0
    assert "1-aa stays" in node.said[-1]


def test_the_library_of_a_container_stays_where_the_first_run_died(node: Node) -> None:
    """The record of which container uses it has been deleted by then."""
    install(node)
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr("partage_cli.installation.uninstall._write_last_act", _killed)
        with pytest.raises(Killed):
            node.uninstall(forced=True)
    assert not (node.root / LIMITS).exists()
    node.uninstall()
    assert (node.root / "usr/local/lib/partage/1-aa").is_dir()


def _killed(_host: Host) -> Path:
    raise Killed


def test_the_last_act_can_be_said_again(node: Node) -> None:
    before = node.files
    install(node)
    script = node.removed(lambda: None)
    (node.root / "opt/partage/1.0-g1/bin/partage").unlink()  # as far as the first run got
    subprocess.run(["/bin/sh", str(script)], check=True)
    assert node.files == before
