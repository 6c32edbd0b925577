"""Programs of the system: found wherever they are, got from Debian where they are missing, or asked for in one line."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from rig.programs import debian, providing
from rig.programs.recipes import Find, Installed, Unpacked
from rig.programs.steps import Task
from rig.programs.telling import Lines
from rig.errors import BuildFailed, MachineUnfit
from support.fake_programs import Fake

FROB = Unpacked("frob", "frob-server", "usr/bin/frob", Find("frob", ("frob-that-no-machine-has",)))


def ignored(_: str) -> None:
    """What is said is not the point of the test."""


def lacking(tmp_path: Path) -> Installed:
    return Installed("frob", ("frob-tools",), (Find("frob", (str(tmp_path / "bin/frob"),)),))


def task(tmp_path: Path) -> Task:
    return Task("frob", tmp_path / "log", Lines(ignored))


def test_without_root_it_says_what_to_install_as_root(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MachineUnfit) as said:
        debian.install([lacking(tmp_path)], task(tmp_path))
    assert str(said.value) == ("this machine lacks frob; as root: apt-get install --no-install-recommends frob-tools")
    assert fake.calls("install") == []


def test_without_apt_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineUnfit, match=r"lacks frob; install them \(Debian's packages are called frob-tools\)"):
        debian.install([lacking(tmp_path)], task(tmp_path))


def test_apt_installs_what_is_missing_and_asks_nobody(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "bin").mkdir()
    fake.tell("provides", str(tmp_path / "bin/frob"))
    debian.install([lacking(tmp_path)], task(tmp_path))
    (install,) = fake.calls("install")
    assert install == "install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 frob-tools"
    assert debian.find_installed(lacking(tmp_path)) == {"frob": tmp_path / "bin/frob"}


def test_a_package_without_the_program_is_an_error(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(BuildFailed, match="apt installed frob-tools, but frob cannot be found"):
        debian.install([lacking(tmp_path)], task(tmp_path))
    assert len(fake.calls("install")) == 1


def test_a_program_is_taken_out_of_a_package_that_is_not_installed(fake: Fake, tmp_path: Path) -> None:
    fake.tell("holds", FROB.inside)
    debian.unpack(FROB, fake.cache, task(tmp_path))
    assert providing.find(FROB, fake.cache) == {"frob": fake.cache.entry(debian.unpacked_key(FROB)) / "bin/frob"}
    assert (fake.calls("update"), fake.calls("install")) == ([], [])


def test_a_machine_without_package_lists_gets_them(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    fake.tell("holds", FROB.inside)
    fake.tell("no-lists")
    debian.unpack(FROB, fake.cache, task(tmp_path))
    assert providing.find(FROB, fake.cache)
    assert len(fake.calls("update")) == 1


def test_a_program_that_should_be_static_and_is_not_is_not_kept(fake: Fake, tmp_path: Path) -> None:
    fake.tell("holds", FROB.inside)
    static = replace(FROB, find=replace(FROB.find, is_static=True))
    with pytest.raises(BuildFailed, match="usr/bin/frob of frob-server is not the program that it should be"):
        debian.unpack(static, fake.cache, task(tmp_path))
    assert providing.find(static, fake.cache) is None


def test_a_folder_of_plugins_must_have_all_of_them(tmp_path: Path) -> None:
    find = Find("bridge", (str(tmp_path / "*/bridge"),), beside=("portmap",))
    for name in ("old/bridge", "whole/bridge", "whole/portmap"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert debian.located(find) == tmp_path / "whole/bridge"


def elf(*kinds: int) -> bytes:
    header = b"\x7fELF\x02\x01\x01".ljust(32, b"\0") + struct.pack("<QQIHHH", 64, 0, 0, 64, 56, len(kinds))
    return header.ljust(64, b"\0") + b"".join(struct.pack("<I", kind).ljust(56, b"\0") for kind in kinds)


@pytest.mark.parametrize(
    ("content", "static"),
    [(elf(1, 1, 4), True), (elf(6, 3, 1), False), (b"#!/bin/sh\n", False), (b"", False), (b"\x7fELF\x01", False)],
)
def test_a_program_that_needs_a_loader_is_not_static(tmp_path: Path, content: bytes, static: bool) -> None:  # noqa: FBT001
    (tmp_path / "program").write_bytes(content)
    assert debian.is_static(tmp_path / "program") is static
