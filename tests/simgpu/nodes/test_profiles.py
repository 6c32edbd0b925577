"""Cards that partage provides, and users' own cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_simgpu.errors import ProfileRefused
from partage_simgpu.profiles import load_profile, profile_names, read_profile

SMALLEST = 'name = "Mine"\nmemory_mib = 1024\n'


def refusal(folder: Path, text: str) -> str:
    file = folder / "card.toml"
    file.write_text(text)
    with pytest.raises(ProfileRefused) as refused:
        read_profile(file)
    message = str(refused.value)
    assert message.startswith(f"{file}: ")
    assert "\n" not in message
    return message.removeprefix(f"{file}: ")


def test_the_promised_cards_are_there() -> None:
    assert set(profile_names()) == {"h200", "h100", "a100-80g", "l4", "t4", "rtx-4090"}


@pytest.mark.parametrize("name", profile_names())
def test_a_card_that_comes_with_partage_says_everything_itself(name: str) -> None:
    profile = load_profile(name)
    assert profile.reserved_mib + profile.context_mib < profile.memory_mib
    assert profile.pci_device_id & 0xFFFF == profile.pci_subsystem_id & 0xFFFF == 0x10DE
    assert profile.power_idle_w < profile.power_limit_w


@pytest.mark.parametrize("name", profile_names())
def test_instances_that_fill_a_card_have_no_more_than_the_card(name: str) -> None:
    profile = load_profile(name)
    for instance in profile.mig.values():
        fit = 8 // instance.placements.size
        assert fit * instance.memory_mib <= profile.memory_mib
        assert min(fit, 7 // instance.slices) * instance.sms <= profile.sms


def test_a_card_of_your_own_needs_a_name_and_memory_only(tmp_path: Path) -> None:
    file = tmp_path / "card.toml"
    file.write_text(SMALLEST)
    profile = read_profile(file)
    assert (profile.name, profile.memory_mib) == ("Mine", 1024)


def test_an_unknown_card_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ProfileRefused, match="there is no card v100; there is a100-80g, h100"):
        load_profile("v100")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory_mib = 1024\n", "name"),
        ('name = "Mine"\nmemory_mib = 0\n', "memory_mib"),
        (SMALLEST + "memory_gib = 1\n", "memory_gib"),
        (SMALLEST + 'compute = "nine"\n', "compute"),
        (SMALLEST + "sms = true\n", "sms"),
        (SMALLEST + "nvlink = { version = 4, links = 19 }\n", "links"),
        (SMALLEST + "reserved_mib = 1000\n", "nothing could run"),
        (
            SMALLEST + '[mig."1g.2gb"]\nslices = 1\nmemory_mib = 2048\nsms = 1\nplacements = {starts=[0],size=1}\n',
            "mig",
        ),
        (SMALLEST + '[mig."a whole one"]\nslices = 1\n', "mig"),
        ('name = "a # b"\nmemory_mib = 1024\n', "name"),
        ('name = "a\\nb"\nmemory_mib = 1024\n', "name"),
        ("name = \n" + SMALLEST, "line 1"),
    ],
)
def test_a_wrong_card_is_refused_in_one_line_that_says_where(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "card.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ProfileRefused):
        read_profile(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileRefused, match="No such file"):
        read_profile(tmp_path / "none.toml")
