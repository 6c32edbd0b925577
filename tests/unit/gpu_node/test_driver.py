"""Facts of an installed driver, above all which device node belongs to which card."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.node import driver as driver_files
from partage_gpu.node.driver import DriverFiles
from partage_gpu.node.minors import KnownNode, node_of, normal_address, parsed
from partage_gpu.node.raw import InstalledDriver
from partage_plugins import Refused
from partage_plugins.api import GpuPart
from unit.gpu_node.nodes import CARDS, FIRST, SECOND, VERSION, MadeNode, card, information, part

HERE = KnownNode("0000:18:00.0", FIRST, 1)


def installed_driver(part: GpuPart, *, root: Path, driver_root: str, host: str = "/") -> InstalledDriver:
    return DriverFiles(root, driver_root, host=host).installed(part, part.cards)


def test_a_card_is_found_by_its_pci_address_not_by_its_index(node: MadeNode) -> None:
    driver = installed_driver(part(), root=node.with_driver().root, driver_root="/")
    assert driver.cards == {FIRST: f"{node.root}/dev/nvidia1", SECOND: f"{node.root}/dev/nvidia0"}


def test_a_node_whose_uuid_is_another_cards_is_nobodys() -> None:
    """A card was exchanged in its slot, and the inventory is not updated yet."""
    assert node_of(CARDS[0], [HERE]) == HERE
    assert node_of(CARDS[0], [HERE._replace(uuid=SECOND)]) is None


def test_a_card_that_was_not_used_yet_is_found_by_its_address_alone() -> None:
    unused = HERE._replace(uuid="GPU-????????-????-????-????-????????????")
    assert node_of(CARDS[0], [unused]) == unused


def test_a_card_of_no_address_or_of_two_is_not_found() -> None:
    assert node_of(card(FIRST, 0, "nowhere"), [HERE]) is None
    assert node_of(CARDS[0], []) is None
    assert node_of(CARDS[0], [HERE, HERE._replace(minor=2)]) is None


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("0000:18:00.0", "0000:18:00.0"),
        ("00000000:18:00.0", "0000:18:00.0"),  # as NVML writes it
        ("00010000:18:00.0", "10000:18:00.0"),
    ],
)
def test_one_address_is_written_in_one_way(address: str, normal: str) -> None:
    assert normal_address(address) == normal


@pytest.mark.parametrize(
    "text", ["", "Device Minor: 0", information(0, "../../etc", FIRST), "Bus Location: 0000:18:00.0"]
)
def test_a_file_that_says_not_enough_is_no_card(text: str) -> None:
    assert parsed(text) is None


@pytest.mark.parametrize("minor", ["-1", "x", "", "1/../2", "٣", "999999999"])
def test_a_minor_that_is_no_small_number_is_no_card(minor: str) -> None:
    assert parsed(information(0, "0000:18:00.0", FIRST).replace("Minor: \t 0", f"Minor: \t {minor}")) is None


@given(st.text())
def test_any_text_gives_a_card_or_none(text: str) -> None:
    found = parsed(text)
    assert found is None or found.minor >= 0


def test_a_card_without_a_device_node_is_not_given(node: MadeNode) -> None:
    (node.with_driver().root / "dev/nvidia1").unlink()
    assert set(installed_driver(part(), root=node.root, driver_root="/").cards) == {SECOND}


def test_a_folder_or_file_in_place_of_a_device_node_is_not_given(node: MadeNode) -> None:
    """Container engines create folders where a mount's source is missing."""
    node.with_driver()
    first, second = (node.root / f"dev/{name}" for name in ("nvidia0", "nvidia1"))
    first.unlink()
    first.mkdir()
    second.unlink()
    second.touch()
    assert not installed_driver(part(), root=node.root, driver_root="/").cards


def test_a_driver_in_a_folder_of_its_own_is_found_there(node: MadeNode) -> None:
    driver = installed_driver(part(), root=node.with_driver("run/nvidia/driver").root, driver_root="/run/nvidia/driver")
    home = f"{node.root}/run/nvidia/driver"
    assert driver.cards[FIRST] == f"{home}/dev/nvidia1"
    assert driver.libraries["libcuda"].startswith(f"{home}/usr/lib/")
    assert driver.programs == {"nvidia-smi": f"{home}/usr/bin/nvidia-smi"}


def test_a_driver_that_the_operator_brings_later_is_found_without_being_told(node: MadeNode) -> None:
    files = DriverFiles(node.root, "/")
    assert not files.installed(part(), CARDS).libraries
    theirs = node.with_driver("run/nvidia/driver").root / "run/nvidia/driver"
    node.write("run/nvidia/driver/usr/lib64/libnvidia-ml.so.1", "")
    driver = files.installed(part(), CARDS)
    assert driver.root == str(theirs)
    assert driver.cards[FIRST] == f"{theirs}/dev/nvidia1"
    assert driver.libraries["libcuda"].startswith(f"{theirs}/usr/lib/")


def test_device_nodes_of_a_driver_in_a_folder_may_be_the_machines(node: MadeNode, tmp_path: Path) -> None:
    node.with_driver()
    (tmp_path / "opt/driver/lib64").mkdir(parents=True)
    node.write(f"opt/driver/lib64/libcuda.so.{VERSION}", "")
    driver = installed_driver(part(), root=node.root, driver_root="/opt/driver")
    assert driver.cards[FIRST] == f"{node.root}/dev/nvidia1"
    assert driver.libraries == {"libcuda": f"{node.root}/opt/driver/lib64/libcuda.so.{VERSION}"}


@pytest.mark.parametrize("version", ["../../etc/passwd", "580", "580.65.06/x", "580..6", " 580.65"])
def test_a_version_that_is_none_reaches_no_path(node: MadeNode, version: str) -> None:
    with pytest.raises(Refused, match="is no version of an NVIDIA driver"):
        installed_driver(part(*CARDS, driver=version), root=node.root, driver_root="/")


def test_paths_below_the_machines_own_root_begin_with_one_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtimes compare them as text."""
    for look in ("_is_file", "is_device"):
        monkeypatch.setattr(f"{driver_files.__name__}.{look}", lambda _: True)
    driver = installed_driver(part(), root=Path("/"), driver_root="/")
    found = [*driver.controls.values(), *driver.libraries.values(), *driver.programs.values()]
    assert driver.root == "/"
    assert found
    assert not [path for path in found if path.startswith("//")]


@pytest.mark.parametrize("below", ["", "run/nvidia/driver"])
def test_in_a_container_paths_are_told_as_the_host_has_them(node: MadeNode, below: str) -> None:
    """A runtime mounts paths of the host, which is mounted in a folder here."""
    host = node.with_driver(below).root
    seen = installed_driver(part(), root=host.parent, driver_root=f"/{host.name}/{below}", host=f"/{host.name}")
    at_home = installed_driver(part(), root=host, driver_root=f"/{below}")
    base = str(host)
    assert seen.root == (at_home.root.removeprefix(base) or "/")
    for name in ("cards", "controls", "libraries", "programs"):
        assert getattr(seen, name) == {each: path.removeprefix(base) for each, path in getattr(at_home, name).items()}
    assert seen.cards
    assert seen.libraries
