"""Settings of crishim that contradict each other are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_crishim.parts import Policy
from partage_crishim.rules.guard import GuardPolicy
from partage_crishim.settings import CrishimSettings


def test_a_drain_that_would_outlast_the_stop_is_refused() -> None:
    with pytest.raises(ValueError, match="drain_s is 30 and stop_deadline_s 20"):
        CrishimSettings(drain_s=30)


def test_handlers_that_run_nvidias_runtime_are_known_to_run_containers() -> None:
    settings = CrishimSettings(container_handlers=("mine",), nvidia_handlers=("gpu",))
    assert Policy.of(settings).grants.confinement.container_handlers == ("mine", "gpu")


def test_the_guard_goes_by_the_settings() -> None:
    assert not CrishimSettings().trusted
    profile = CrishimSettings(trusted_namespaces=("m",), profile="gpu-operator")
    assert profile.trusted == {"m", "gpu-operator"}, "another namespace of that kind may be anybody's"
    settings = CrishimSettings(guard="on", trusted_namespaces=("m",), nvidia_handlers=("gpu",))
    guard = GuardPolicy(mode="on", trusted=frozenset({"m"}), nvidia_handlers=frozenset({"gpu"}))
    assert Policy.of(settings).guard == guard


def test_links_that_lead_in_a_circle_leave_the_usual_folders(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    settings = CrishimSettings(root=tmp_path, mount_roots=(Path("/circle"),))
    usual = Policy.of(CrishimSettings(root=tmp_path)).grants.roots.mounts
    assert set(usual) <= set(Policy.of(settings).grants.roots.mounts)


def test_what_a_driver_in_a_folder_of_its_own_brings_may_be_attached_and_nothing_beside_it(tmp_path: Path) -> None:
    roots = Policy.of(CrishimSettings(root=tmp_path, driver_root=Path("/var/driver"))).grants.roots
    usual = Policy.of(CrishimSettings(root=tmp_path)).grants.roots
    driver = tmp_path / "var/driver"
    brought = {str(driver / each) for each in ("usr", "lib", "lib64", "run/nvidia-persistenced")}
    assert set(roots.mounts) - set(usual.mounts) == brought
    assert set(roots.devices) - set(usual.devices) == {str(driver / "dev")}
