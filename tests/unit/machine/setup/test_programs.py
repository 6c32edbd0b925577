"""Programs of others: those of the machine are taken, containerd is unpacked where it is missing, the rest is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from partage_cli.machine.places import PROGRAMS
from partage_cli.machine.setup.errors import Missing
from partage_cli.machine.setup.network import PLUGINS
from partage_cli.machine.setup.programs import CONTAINERD, Finder

UNPACK = f"""mkdir -p $3/usr/bin
for each in {" ".join(CONTAINERD)}; do echo > $3/usr/bin/$each; chmod 755 $3/usr/bin/$each; done"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are found first; it has an apt that works, and the machine's usual folders are not looked at."""
    folder = tmp_path / "path"
    folder.mkdir()
    for each in ("sh", "mkdir", "chmod"):
        (folder / each).symlink_to(f"/bin/{each}")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("partage_cli.machine.setup.programs.PATH", "")
    program(folder / "apt-get", 'echo "$1" >> $0.log; echo > containerd_1.deb')
    program(folder / "dpkg-deb", UNPACK)
    program(folder / "runc")
    program(folder / "iptables")
    program(folder / "ip")
    for plugin in PLUGINS:
        program(tmp_path / "opt/cni/bin" / plugin)
    return folder


def program(file: Path, script: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def asked(path: Path) -> list[str]:
    log = path / "apt-get.log"
    return log.read_text().split() if log.exists() else []


def test_what_is_there_is_taken_and_nothing_is_fetched(path: Path, tmp_path: Path) -> None:
    for name in CONTAINERD:
        program(path / name)
    found = Finder(tmp_path, lambda _: None).find(None)
    assert found.programs.containerd == str(path / "containerd")
    assert (found.programs.cni, found.installed) == (str(tmp_path / "opt/cni/bin"), ())
    assert asked(path) == []


def test_a_containerd_without_its_shim_is_as_good_as_none_and_debians_is_unpacked_once(
    path: Path, tmp_path: Path
) -> None:
    program(path / "containerd")
    own = tmp_path / PROGRAMS / "usr/bin/containerd"
    for _ in range(2):
        assert Finder(tmp_path, lambda _: None).find(None).programs.containerd == str(own)
    assert asked(path) == ["download"]
    assert [each.name for each in (tmp_path / PROGRAMS).parent.iterdir()] == ["programs"]


def test_lists_that_are_old_are_fetched_once_and_then_it_is_said_what_apt_said(path: Path, tmp_path: Path) -> None:
    program(path / "apt-get", 'echo "$1" >> $0.log; echo "E: no such package" >&2; test "$1" = update')
    with pytest.raises(Missing, match="E: no such package; is there a network") as raised:
        Finder(tmp_path, lambda _: None).find(None)
    assert asked(path) == ["download", "update", "download"]
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("gone", "package"), [("runc", "runc"), ("iptables", "iptables"), ("ip", "iproute2"), ("apt-get", "containerd")]
)
def test_what_can_t_be_got_is_named_by_its_package(path: Path, tmp_path: Path, gone: str, package: str) -> None:
    (path / gone).unlink()
    with pytest.raises(Missing, match=f"lacks what Debian's packages {package} have"):
        Finder(tmp_path, lambda _: None).find(None)


def test_a_containerd_that_is_named_must_be_whole(path: Path, tmp_path: Path) -> None:
    program(tmp_path / "my/containerd")
    with pytest.raises(Missing, match=f"there is no {tmp_path / 'my/containerd-shim-runc-v2'}; --containerd names"):
        Finder(tmp_path, lambda _: None).find(tmp_path / "my/containerd")
    assert os.access(path / "runc", os.X_OK)
