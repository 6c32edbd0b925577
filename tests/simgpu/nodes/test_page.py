"""The page about simulated GPUs describes what exists, and names nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from partage_cli.simgpu import command
from partage_cli.simgpu_faults import inject, nvml
from partage_simgpu.profiles import read_profile

PAGE: Final = (Path(__file__).parents[3] / "docs/simgpu.md").read_text()
OWN: Final = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]


def section(heading: str) -> str:
    return re.split(r"^##+ ", PAGE.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def first_column(text: str) -> list[str]:
    """The code spans in the first cell of each row."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def options(group: click.Group) -> Iterator[str]:
    for each in group.commands.values():
        yield from (option for parameter in each.params for option in parameter.opts)
        if isinstance(each, click.Group):
            yield from options(each)


def test_every_command_is_on_the_page_and_the_page_names_no_other() -> None:
    assert set(re.findall(r"partage simgpu ([a-z]+)", PAGE)) == set(command.commands)
    assert {words.split()[2] for words in first_column(section("Commands"))} == set(command.commands)


def test_every_fault_is_on_the_page_and_the_page_names_no_other() -> None:
    named = first_column(section("Faults"))
    known = set(inject.commands) - {"nvml"}
    assert {words.split()[0] for words in named} - {"nvml"} == known
    assert {words.split()[1] for words in named if words.startswith("nvml")} == set(nvml.commands)


@pytest.mark.parametrize("words", first_column(section("Faults")))
def test_every_fault_of_the_page_is_one_that_the_command_line_takes(words: str) -> None:
    meant: click.Command = inject
    words_left = words.split()
    while isinstance(meant, click.Group):
        meant = meant.commands[words_left.pop(0)]
    with meant.make_context(words, words_left) as context:  # raises on unknown words
        assert not context.args


def test_every_option_of_the_page_exists() -> None:
    of_programs = {"--seconds", "--count", "--kernel-us", "--card", "--rate", "--help"}
    of_others = {"--driver-root", "--simulated", "--against"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) <= set(options(command)) | of_programs | of_others


def test_the_card_of_the_page_is_a_card(tmp_path: Path) -> None:
    (tmp_path / "card.toml").write_text(OWN)
    assert read_profile(tmp_path / "card.toml").mig
