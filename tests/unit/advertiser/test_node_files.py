"""The advertiser's files on its node: the inventory and its pause; and the liveness files that it reads."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from partage_advertiser.inventory import InventoryFile
from partage_advertiser.liveness_files import LABEL, MIG_LABEL, OURS, PauseFile, Readiness, why_paused
from partage_base.condition import Condition, Fault, encode_condition
from partage_base.files import UNFINISHED
from partage_base.version import VERSION
from partage_plugins.api.inventory import Ready
from partage_plugins.api.places import (
    BROKER_ALIVE,
    CRISHIM_CONDITION,
    INVENTORY_FILE,
    KUBELET_SPOKE,
    PAUSE_FOLDER,
)


class TestTheInventory:
    def test_is_written_once_for_the_same_text(self, tmp_path: Path) -> None:
        file = InventoryFile(tmp_path)
        assert file.write(b"a")
        inode = (tmp_path / INVENTORY_FILE).stat().st_ino
        assert not file.write(b"a")
        assert (tmp_path / INVENTORY_FILE).stat().st_ino == inode
        assert file.write(b"b")
        assert (tmp_path / INVENTORY_FILE).read_bytes() == b"b"

    def test_can_be_read_by_all_and_written_by_one(self, tmp_path: Path) -> None:
        before = os.umask(0o077)
        try:
            InventoryFile(tmp_path).write(b"a")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / INVENTORY_FILE).stat().st_mode) == 0o644

    def test_stays_as_it_was_where_there_is_no_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = InventoryFile(tmp_path)
        file.write(b"old")

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            file.write(b"new")
        assert [path.name for path in (tmp_path / INVENTORY_FILE).parent.iterdir()] == [Path(INVENTORY_FILE).name]
        assert file.text() == b"old"

    def test_of_a_killed_writer_is_whole(self, tmp_path: Path) -> None:
        InventoryFile(tmp_path).write(b"old" * 1000)
        (tmp_path / INVENTORY_FILE).with_name(f"{UNFINISHED}0123").write_bytes(b"newer")
        file = InventoryFile(tmp_path)
        assert file.text() == b"old" * 1000
        assert file.write(b"new")
        assert file.text() == b"new"

    def test_is_not_written_through_a_link_that_somebody_left(self, tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.write_bytes(b"precious")
        path = tmp_path / INVENTORY_FILE
        path.parent.mkdir(parents=True)
        path.symlink_to(other)
        InventoryFile(tmp_path).write(b"new")
        assert (path.is_symlink(), path.read_bytes(), other.read_bytes()) == (False, b"new", b"precious")


class TestThePause:
    @pytest.mark.parametrize("state", ["cordon-required", "drain-required", "pod-restart-required", "upgrade-failed"])
    def test_lasts_while_the_operator_works_on_the_driver(self, state: str) -> None:
        assert why_paused({LABEL: state}) == "the GPU operator upgrades the driver"

    @pytest.mark.parametrize("state", ["pending", "rebooting"])
    def test_lasts_while_mig_instances_are_made(self, state: str) -> None:
        assert why_paused({MIG_LABEL: state}) == "the MIG manager makes other instances"

    @pytest.mark.parametrize("client", ["client", "device-plugin", "dcgm-exporter"])
    def test_lasts_while_the_operator_keeps_a_client_of_the_driver_stopped(self, client: str) -> None:
        labels = {f"nvidia.com/gpu.deploy.{client}": "paused-for-driver-upgrade", MIG_LABEL: "success"}
        assert why_paused(labels) == "the GPU operator keeps its clients stopped: paused-for-driver-upgrade"

    @pytest.mark.parametrize(
        "labels",
        [
            {},
            {LABEL: "upgrade-done"},
            {LABEL: "upgrade-required"},
            {LABEL: ""},
            {MIG_LABEL: "success"},
            {MIG_LABEL: "failed"},
            {"nvidia.com/gpu.deploy.device-plugin": "true", "nvidia.com/gpu.deploy.driver": "false"},
            {"example.com/gpu.deploy.client": "paused-for-lunch"},
        ],
    )
    def test_is_over_while_it_does_not(self, labels: dict[str, str]) -> None:
        assert why_paused(labels) is None

    def test_leaves_that_of_a_person_alone(self, tmp_path: Path) -> None:
        by_hand = tmp_path / PAUSE_FOLDER / "by-hand"
        by_hand.parent.mkdir(parents=True)
        by_hand.write_text("a new driver\n")
        file = PauseFile(tmp_path)
        assert file.say("an upgrade")
        assert not file.say("an upgrade")
        assert sorted(path.name for path in by_hand.parent.iterdir()) == ["by-hand", OURS]
        assert file.say(None)
        assert not file.say(None)
        assert [path.name for path in by_hand.parent.iterdir()] == ["by-hand"]


class TestSignsOfLife:
    NOW = 1_000_000.0

    def _ready(self, root: Path) -> tuple[bool, bool]:
        now = self._now(root)
        assert bool(now.why) is not (now.crishim and now.broker), "who is not in force is said why"
        return now.crishim, now.broker

    def _now(self, root: Path) -> Ready:
        return Readiness(root, within_s=20, clock=lambda: self.NOW).now()

    def _sign(self, root: Path, name: str, age_s: float) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (self.NOW - age_s, self.NOW - age_s))

    def test_of_nobody_is_nobody(self, tmp_path: Path) -> None:
        assert self._ready(tmp_path) == (False, False)

    @pytest.mark.parametrize(("age_s", "counts"), [(0, True), (20, True), (21, False), (-1, True), (-3600, False)])
    def test_count_while_they_are_young(self, tmp_path: Path, age_s: float, *, counts: bool) -> None:
        self._condition(tmp_path)
        self._sign(tmp_path, KUBELET_SPOKE, age_s)
        assert self._ready(tmp_path) == (counts, False)
        self._sign(tmp_path, BROKER_ALIVE, age_s)
        assert self._ready(tmp_path) == (counts, counts)

    def _condition(self, root: Path, *faults: Fault, age_s: float = 0) -> None:
        path = root / CRISHIM_CONDITION
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_condition(Condition(faults=faults)))
        os.utime(path, (self.NOW - age_s, self.NOW - age_s))

    def test_a_crishim_that_serves_and_honours_no_allocation_is_not_in_force(self, tmp_path: Path) -> None:
        self._sign(tmp_path, KUBELET_SPOKE, 0)
        self._condition(tmp_path, Fault("metrics", "its port is taken", refuses=False))
        assert self._ready(tmp_path) == (True, False)
        self._condition(tmp_path, Fault("settings", "a key is unknown"))
        assert self._ready(tmp_path) == (False, False)

    @pytest.mark.parametrize("said", [None, b"", b'{"faults":[', b'{"faults":[{"cause":"../x","sentence":"y"}]}'])
    def test_a_crishim_that_does_not_say_how_it_is_is_not_in_force(self, tmp_path: Path, said: bytes | None) -> None:
        self._sign(tmp_path, KUBELET_SPOKE, 0)
        if said is not None:
            (tmp_path / CRISHIM_CONDITION).write_bytes(said)
        assert self._ready(tmp_path) == (False, False)

    def test_what_it_said_long_ago_counts_no_more(self, tmp_path: Path) -> None:
        self._sign(tmp_path, KUBELET_SPOKE, 0)
        self._condition(tmp_path, age_s=21)
        assert self._ready(tmp_path) == (False, False)

    def test_who_is_not_in_force_is_said_why(self, tmp_path: Path) -> None:
        assert self._now(tmp_path).why == "crishim gives no sign of life; the broker gives no sign of life"
        self._sign(tmp_path, BROKER_ALIVE, 0)
        self._condition(tmp_path)
        assert self._now(tmp_path).why == "kubelet does not speak through crishim"
        self._sign(tmp_path, KUBELET_SPOKE, 0)
        assert self._now(tmp_path) == Ready(crishim=True, broker=True)
        self._condition(
            tmp_path, Fault("metrics", "its port is taken", refuses=False), Fault("keys", "no key verifies")
        )
        assert self._now(tmp_path).why == "crishim honours no allocation: no key verifies"

    def test_versions_are_those_of_who_gives_signs_of_life(self, tmp_path: Path) -> None:
        readiness = Readiness(tmp_path, within_s=20, clock=lambda: self.NOW)
        assert readiness.versions() == {"advertiser": VERSION}
        self._condition(tmp_path)
        self._sign(tmp_path, BROKER_ALIVE, 0)
        assert readiness.versions() == {"advertiser": VERSION}, "older ones do not say theirs"
        (tmp_path / CRISHIM_CONDITION).write_bytes(encode_condition(Condition(version="0.2.0")))
        (tmp_path / BROKER_ALIVE).write_text("0.1.9")
        for name in (CRISHIM_CONDITION, BROKER_ALIVE):
            self._sign(tmp_path, name, 0)
        assert readiness.versions() == {"advertiser": VERSION, "broker": "0.1.9", "crishim": "0.2.0"}
        (tmp_path / BROKER_ALIVE).write_text("x,y=\x1b")
        self._sign(tmp_path, BROKER_ALIVE, 0)
        self._sign(tmp_path, CRISHIM_CONDITION, 21)
        assert readiness.versions() == {"advertiser": VERSION}
