"""Conditions are looked at on the machine, each by what decides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.critest import conditions, probe
from rig.errors import MachineUnfit

OLD = '{"linux": {"cgroup": {}}}'
NEW = '{"linux": {"mountExtensions": {"idmap": {"enabled": true}}}}'


def runc(folder: Path, said: str, status: int = 0) -> Path:
    path = folder / "runc"
    path.write_text(f"#!/bin/sh\necho '{said}'\necho 'no such command' >&2\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def apparmor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with AppArmor and all that loads profiles; tests take away from it."""
    folder = tmp_path / "apparmor"
    (folder / "bin").mkdir(parents=True)
    for name in ("enabled", "profiles", "bin/sudo", "bin/apparmor_parser"):
        (folder / name).write_text("Y\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(conditions, "_ENABLED", folder / "enabled")
    monkeypatch.setattr(conditions, "_PROFILES", folder / "profiles")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/bin:/usr/bin")
    return folder


@pytest.mark.parametrize(("said", "holds"), [(OLD, True), (NEW, False), ('{"linux": {}}', True), ("{}", True)])
def test_runc_is_asked_whether_it_maps_the_owners_of_mounts(tmp_path: Path, said: str, *, holds: bool) -> None:
    assert probe(runc(tmp_path, said))["runc without idmapped mounts"] is holds


def test_a_runc_that_cannot_say_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MachineUnfit, match=r"runc features` failed: no such command; runc must be 1.1 or newer"):
        probe(runc(tmp_path, "", status=1))


def test_with_apparmor_and_its_tools_nothing_is_excused(tmp_path: Path, apparmor: Path) -> None:
    assert not any(probe(runc(tmp_path, NEW)).values())


@pytest.mark.parametrize("state", ["N\n", ""])
def test_apparmor_that_is_switched_off_is_none(tmp_path: Path, apparmor: Path, state: str) -> None:
    (apparmor / "enabled").write_text(state)
    said = probe(runc(tmp_path, NEW))
    assert said["no AppArmor"]
    assert not said["AppArmor, but no way to load profiles"]


def test_a_kernel_without_apparmor_has_none(tmp_path: Path, apparmor: Path) -> None:
    (apparmor / "enabled").unlink()
    assert probe(runc(tmp_path, NEW))["no AppArmor"]


@pytest.mark.parametrize("missing", ["profiles", "bin/sudo", "bin/apparmor_parser"])
def test_apparmor_whose_profiles_cannot_be_loaded_is_told_apart(
    tmp_path: Path, apparmor: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setenv("PATH", str(apparmor / "bin"))
    (apparmor / missing).unlink()
    assert probe(runc(tmp_path, NEW)) == {
        "no AppArmor": False,
        "AppArmor, but no way to load profiles": True,
        "runc without idmapped mounts": False,
    }
