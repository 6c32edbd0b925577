"""An upgrade on a node whose service manager and sockets are made up; all files are real."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from partage_cli.doctor.runtimes import Runtime
from partage_cli.installation import journal
from partage_cli.installation.errors import InstallationError, NotProved, StepFailed, UnfitNode
from partage_cli.installation.host import Host
from partage_cli.installation.tree import ADVERTISER_UNIT, OUR_UNITS, pointed
from partage_cli.installation.versions import daemons
from partage_cli.installation.versions.contracts import OURS, encode
from partage_cli.installation.versions.daemons import ADVERTISER, BROKER, CRISHIM
from partage_cli.installation.versions.upgrade import NewVersion, upgrade
from support.trees import a_tree
from unit.installation import made

OLD, NEW = "1.0-g1", "1.1-g2"
_PROGRAM = """\
#!/bin/sh
case " $* " in *" contracts "*) cat {contracts} ;; *" {fails} "*) echo "it is wrong" >&2; exit 78 ;; esac
"""


class Killed(BaseException):
    """The process ends here."""


class Services(made.Services):
    """Starts the link's target; a tree with a file `broken-UNIT` does not start that unit."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root, self.command = root, ("true",)
        self.restarted: list[str] = []

    def start(self, *units: str) -> None:
        for unit in units:
            self.restart(unit)

    def restart(self, unit: str) -> None:
        version = os.readlink(self.root / "opt/partage/current")  # noqa: PTH115  patched here
        self.restarted.append(f"{version} {unit}")
        self.active.discard(unit)
        if (self.root / "opt/partage" / version / f"broken-{unit}").exists():
            raise StepFailed(f"{unit} failed")
        self.active.add(unit)
        self.live()

    def live(self) -> None:
        """Updates every daemon's liveness file."""
        for daemon in (BROKER, CRISHIM):
            if daemon.unit in self.active:
                sign = self.root / daemon.sign
                sign.parent.mkdir(parents=True, exist_ok=True)
                sign.write_text('{"v":1,"faults":[]}')
                os.utime(sign, (time.time() + 0.01, time.time() + 0.01))


@dataclass
class Node:
    root: Path
    services: Services
    said: list[str] = field(default_factory=list[str])
    now: float = 0.0

    def tree(
        self, version: str, *, fails: str = "nothing", broken: Sequence[str] = (), contracts: bytes = encode(OURS)
    ) -> Path:
        tree = self.root / "opt/partage" / version
        program = _PROGRAM.format(contracts=tree / "contracts", fails=fails).encode()
        files = {"contracts": contracts}
        for name in ("partage", BROKER.program, CRISHIM.program, ADVERTISER.program):
            files[f"bin/{name}"] = program
        for unit in (*OUR_UNITS, ADVERTISER_UNIT):
            files[f"systemd/{unit}"] = version.encode()
        for unit in broken:
            files[f"broken-{unit}"] = b""
        return a_tree(tree, version, files)

    def upgrade(self, tree: Path) -> None:
        host = Host(self.root, self.services, self.said.append)
        with journal.kept(self.root) as kept:
            upgrade(host, kept, NewVersion(tree, clock=lambda: self.now, sleep=self._sleep))

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        self.services.live()

    @property
    def in_force(self) -> str:
        return pointed(self.root)

    @property
    def traces(self) -> list[str]:
        """Files of an unfinished change of versions."""
        names = (".before", "version-back", "went-back", "trial")
        left = [str(path) for path in self.root.rglob("*") if path.name in names or path.name.endswith(".before")]
        return left + [each for each in journal.read(self.root).states if each == "upgrade"]

    @property
    def unit(self) -> str:
        return (self.root / "etc/systemd/system" / CRISHIM.unit).read_text()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return a_node(tmp_path / "node", monkeypatch)


def a_node(root: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node on which version 1.0 is in force and works."""
    for folder in ("etc/systemd/system", "usr/local/lib/partage", "run/partage"):
        (root / folder).mkdir(parents=True)
    node = Node(root, Services(root))
    node.tree(OLD)
    (root / "opt/partage/current").symlink_to(OLD)
    for unit in OUR_UNITS:
        (root / "etc/systemd/system" / unit).write_text(OLD)
    node.services.start(BROKER.unit, CRISHIM.unit)
    node.services.restarted.clear()
    monkeypatch.setattr(daemons, "runtime_at", lambda _: Runtime("containerd", "2"))
    monkeypatch.setattr(daemons, "BrokerClient", _Broker)
    return node


class _Broker:
    def __init__(self, _root: Path) -> None: ...

    def tell(self) -> None: ...


def test_the_new_version_is_in_force_with_its_units_and_the_broker_starts_first(node: Node) -> None:
    node.upgrade(node.tree(NEW))
    assert (node.in_force, node.unit, node.traces) == (NEW, NEW, [])
    assert node.services.restarted == [f"{NEW} {BROKER.unit}", f"{NEW} {CRISHIM.unit}"]
    assert journal.read(node.root).version == NEW


@pytest.mark.parametrize("program", ["/opt/partage/current/bin/partage-advertiser", "/usr/bin/partage-advertiser"])
def test_an_advertiser_that_is_a_unit_starts_again_last_and_has_the_new_unit_where_it_is_of_a_tree(
    node: Node, program: str
) -> None:
    unit = node.root / "etc/systemd/system" / ADVERTISER.unit
    unit.write_text(f"ExecStart={program}\n")
    before = unit.read_text()
    node.services.active.add(ADVERTISER.unit)
    node.upgrade(node.tree(NEW))
    assert node.services.restarted[-1] == f"{NEW} {ADVERTISER.unit}"
    assert unit.read_text() == (NEW if "current" in program else before)
    assert node.traces == []


def test_each_daemon_is_asked_about_its_configuration_before_anything_changes(node: Node) -> None:
    new = node.tree(NEW, fails="--check")
    with pytest.raises(UnfitNode, match=r"partage-broker .*--check.* ended with 78: it is wrong; nothing was changed"):
        node.upgrade(new)
    assert (node.in_force, node.unit, node.services.restarted, node.traces) == (OLD, OLD, [], [])


def test_a_version_that_cannot_read_what_this_one_leaves_is_refused(node: Node) -> None:
    new = node.tree(NEW, contracts=b'{"the broker\'s rows":{"reads":["2"],"leaves":["2"]}}')
    with pytest.raises(UnfitNode, match="the broker's rows"):
        node.upgrade(new)
    assert (node.in_force, node.services.restarted) == (OLD, [])


def test_a_library_that_cannot_be_installed_stops_it_before_anything_changes(node: Node) -> None:
    with pytest.raises(StepFailed, match="--install-library"):
        node.upgrade(node.tree(NEW, fails="--install-library"))
    assert (node.in_force, node.services.restarted, node.traces) == (OLD, [], [])


@pytest.mark.parametrize("broken", [BROKER.unit, CRISHIM.unit, ADVERTISER.unit])
def test_a_daemon_that_does_not_start_brings_the_version_before_back_with_its_units(node: Node, broken: str) -> None:
    unit = node.root / "etc/systemd/system" / ADVERTISER.unit
    unit.write_text("ExecStart=/opt/partage/current/bin/partage-advertiser\n")
    before = unit.read_text()
    node.services.active.add(ADVERTISER.unit)
    with pytest.raises(NotProved, match=rf"{NEW}: {broken} failed; {OLD} is in force again"):
        node.upgrade(node.tree(NEW, broken=[broken]))
    assert (node.in_force, node.unit, unit.read_text(), node.traces) == (OLD, OLD, before, [])
    assert node.services.restarted[-3:] == [f"{OLD} {each.unit}" for each in (BROKER, CRISHIM, ADVERTISER)]


def test_a_daemon_that_starts_and_shows_no_life_brings_the_version_before_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = node.tree(NEW)
    alive = node.services.live
    monkeypatch.setattr(node.services, "live", lambda: None if node.in_force == NEW else alive())
    with pytest.raises(NotProved, match="partage-broker shows no sign of life"):
        node.upgrade(new)
    assert node.in_force == OLD


def test_a_node_whose_daemons_do_not_run_gets_the_link_and_nothing_is_started(node: Node) -> None:
    node.services.active.clear()
    node.upgrade(node.tree(NEW))
    assert (node.in_force, node.services.restarted) == (NEW, [])


def test_the_version_that_is_in_force_is_left_alone(node: Node) -> None:
    node.upgrade(node.root / "opt/partage" / OLD)
    assert (node.in_force, node.services.restarted) == (OLD, [])


def test_the_version_before_stays_and_older_ones_go(node: Node) -> None:
    oldest = node.tree("0.9-g0")
    node.upgrade(node.tree(NEW))
    assert not oldest.exists()
    assert (node.root / "opt/partage" / OLD).is_dir()


def test_a_library_goes_when_no_container_has_it(node: Node) -> None:
    folder = node.root / "usr/local/lib/partage"
    for name in ("1", "2", "3"):
        (folder / name).mkdir()
    (folder / "current").symlink_to("3")
    limits = node.root / "run/partage/state/containers/key.json"
    limits.parent.mkdir(parents=True)
    limits.write_text('{"library":"/usr/local/lib/partage/2"}')
    node.upgrade(node.tree(NEW))
    assert sorted(path.name for path in folder.iterdir()) == ["2", "3", "current"]


class Deaths:
    """Allows this many changes of the node, and ends the process before the next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.left = after
        for owner, name in (
            (Path, "symlink_to"),
            (Path, "rename"),
            (Path, "unlink"),
            (os, "rename"),
            (shutil, "rmtree"),
            (Services, "restart"),
        ):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, real: Callable[..., object]) -> Callable[..., object]:
        def counted(*positional: object, **named: object) -> object:
            if self.left == 0:
                raise Killed
            self.left -= 1
            return real(*positional, **named)

        return counted


@pytest.mark.slow
@pytest.mark.parametrize("broken", [(), (CRISHIM.unit,)], ids=["good", "broken"])
def test_killed_before_any_change_it_leaves_a_node_that_works_and_the_next_run_finishes(
    tmp_path: Path, *, broken: Sequence[str]
) -> None:
    """Running programs are never without the tree and units from which they were started."""
    deaths = 0
    while True:
        with pytest.MonkeyPatch.context() as patches:
            node = a_node(tmp_path / str(deaths), patches)
            new = node.tree(NEW, broken=broken)
            with pytest.MonkeyPatch.context() as mortal:
                Deaths(mortal, deaths)
                try:
                    node.upgrade(new)
                except Killed:
                    ended = False
                except NotProved:
                    ended = True
                else:
                    ended = True
            assert node.in_force in {OLD, NEW}
            if node.in_force == NEW and broken:
                assert (node.root / "var/lib/partage/node/version-back").exists() or ended
            _finish(node, new, expected=OLD if broken else NEW)
            deaths += 1
            if ended:
                break
    assert deaths > 10


def _finish(node: Node, new: Path, *, expected: str) -> None:
    for _ in range(2):  # the first run may only report the outcome of the one before
        try:
            node.upgrade(new)
        except InstallationError as error:
            assert isinstance(error, NotProved), error  # noqa: PT017  another would be a defect
    assert (node.in_force, node.unit, node.traces) == (expected, expected, [])
    assert node.services.active == {BROKER.unit, CRISHIM.unit}
