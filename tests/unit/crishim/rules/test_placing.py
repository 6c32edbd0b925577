"""No volume overlaps what was added for a grant, and what was added is what its path says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from partage_plugins.api import Device, Mount
from unit.crishim.rules.allocations import allocation, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage, enforced

GRANTED = Create(annotations=signed(allocation()))
LIBRARY = "/usr/local/lib/libpartage.so"


@pytest.fixture
def library(stage: Stage) -> Path:
    """A file that the plugin mounts, and a device."""
    file = stage.root / "opt/partage/1.0/libpartage.so"
    file.parent.mkdir(parents=True)
    file.write_text("ELF")
    node = stage.root / "dev/nvidia0"
    node.parent.mkdir()
    node.symlink_to(os.devnull)
    return file


def adjusted(source: object, *, device: object = None) -> object:
    devices = () if device is None else (Device(container_path="/dev/nvidia0", host_path=str(device)),)
    return enforced(mounts=(Mount(container_path=LIBRARY, host_path=str(source)),), devices=devices)


class TestVolumes:
    @pytest.mark.parametrize(
        ("volume", "ours"),
        [
            ("/run/partage", "/run/partage"),
            ("/run", "/run/partage"),
            ("/run/partage/sub", "/run/partage"),
            ("/", "/run/partage"),
            ("run/partage", "/run/partage"),
            ("/run//x/../partage/", "/run/partage"),
            ("/var/run/partage", "/run/partage"),
            ("/var/run", "/run/partage"),
            (LIBRARY, LIBRARY),
            ("/usr/local", LIBRARY),
            (f"{LIBRARY}/x", LIBRARY),
        ],
    )
    def test_at_above_and_below_our_paths_are_refused(
        self, volume: str, ours: str, stage: Stage, crishim: Crishim, library: Path
    ) -> None:
        stage.fake.answer = adjusted(library)  # type: ignore[assignment]
        assert crishim.refusal(replace(GRANTED, mounts=[("/data", "/d"), (volume, "/x")])) == (
            f"partage: the container mounts a volume at {volume!r}, which meets {ours} of its grant; mount the volume "
            "elsewhere"
        )

    def test_one_that_is_an_image_is_no_exception(self, crishim: Crishim) -> None:
        assert "meets /run/partage of its grant" in crishim.refusal(replace(GRANTED, mounts=[("/run/partage", "")]))

    def test_beside_them_are_not(self, stage: Stage, crishim: Crishim, library: Path) -> None:
        stage.fake.answer = adjusted(library)  # type: ignore[assignment]
        beside = ["/run/secrets/x", "/var/run/secrets/x", "/run/partage2", "/usr/local/lib/libpartage.so.1", "/dev/x"]
        crishim.rewrite(replace(GRANTED, mounts=[(path, "/x") for path in beside]))

    def test_a_container_without_a_grant_may_mount_there(self, crishim: Crishim) -> None:
        crishim.passes(Create(mounts=[("/run/partage", "/x")]))


class TestSources:
    def refusal(self, stage: Stage, source: object, device: object = None) -> str:
        stage.fake.answer = adjusted(source, device=device)  # type: ignore[assignment]
        return stage.crishim().refusal(GRANTED)

    def test_what_is_there_is_put_in(self, stage: Stage, crishim: Crishim, library: Path) -> None:
        node = stage.root / "dev/null"
        os.mknod(node, 0o20600, os.makedev(1, 3))
        stage.fake.answer = adjusted(library, device=node)  # type: ignore[assignment]
        seen = crishim.rewrite(GRANTED)
        assert (LIBRARY.encode(), str(library).encode()) in seen.mounts
        assert seen.devices == [(b"/dev/nvidia0", str(node).encode())]

    def test_links_within_the_folders_are_followed(self, stage: Stage, crishim: Crishim, library: Path) -> None:
        link = library.with_name("current.so")
        link.symlink_to(library)
        stage.fake.answer = adjusted(link)  # type: ignore[assignment]
        crishim.rewrite(GRANTED)

    def test_a_source_that_is_missing_is_refused(self, stage: Stage, library: Path) -> None:
        gone = library.with_name("gone.so")
        assert self.refusal(stage, gone) == (
            f"partage: plugin gpu names {gone}, which is not on this node; is it installed there?"
        )

    @pytest.mark.parametrize("leads", ["a link", "dots", "plainly", "a folder that only begins like one"])
    def test_a_source_that_leads_out_is_refused(self, leads: str, stage: Stage, library: Path) -> None:
        outside = stage.root / "etc/shadow"
        outside.write_text("secret")
        (stage.root / "opt2").mkdir()
        (stage.root / "opt2/x").touch()
        link = library.with_name("link.so")
        link.symlink_to(outside)
        source = {
            "a link": link,
            "dots": library.parent / "../../../etc/shadow",
            "plainly": outside,
            "a folder that only begins like one": stage.root / "opt2/x",
        }[leads]
        assert self.refusal(stage, source) == (
            f"partage: plugin gpu names {source}, which leads out of the folders that plugins may use; see crishim's "
            "setting for them"
        )

    def test_a_device_must_be_one_and_lie_among_devices(self, stage: Stage, library: Path) -> None:
        plain = stage.root / "dev/plain"
        plain.touch()
        assert self.refusal(stage, library, plain) == (
            f"partage: plugin gpu names {plain} as a device, which it is not"
        )
        assert "leads out" in self.refusal(stage, library, library)
        assert "leads out" in self.refusal(stage, library, stage.root / "dev/nvidia0")  # a link to another /dev
        assert "is not on this node" in self.refusal(stage, library, stage.root / "dev/nvidia7")
