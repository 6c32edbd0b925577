"""Completed steps survive every kill, and a step that had begun is repeated with the same facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from partage_cli.installation.errors import AnotherWorks, JournalWrong
from partage_cli.installation.host import Host
from partage_cli.installation.journal import Change, Plan, StepName, carry_out, kept, read, take_back
from partage_cli.installation.places import JOURNAL
from unit.installation.made import a_host

NAMES: tuple[StepName, ...] = ("save", "arm", "endpoint")


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


class Number(msgspec.Struct, frozen=True):
    number: int


@dataclass
class World:
    """The state that steps change, and after how many changes they are killed."""

    files: dict[str, int] = field(default_factory=dict[str, int])
    plans: int = 0
    left: int = 1000

    def change(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1


class Numbering:
    """Writes the number that it saw when it was planned."""

    facts_type = Number

    def __init__(self, name: StepName, world: World) -> None:
        self.name: StepName = name
        self._world = world

    def plan(self, host: Host) -> Plan[Number]:
        self._world.plans += 1
        return Plan((Change("put", self.name),), Number(self._world.plans))

    def do(self, host: Host, facts: Number) -> None:
        self._world.change()
        self._world.files[self.name] = facts.number
        self._world.change()

    def undo(self, host: Host, facts: Number) -> None:
        self._world.change()
        assert self._world.files.pop(self.name, facts.number) == facts.number


def steps(world: World) -> list[Any]:
    return [Numbering(name, world) for name in NAMES]


def test_killed_at_any_point_the_next_run_finishes_with_the_facts_of_the_first(tmp_path: Path) -> None:
    host, _ = a_host(tmp_path)
    for kill_after in range(7):  # two kills for each of the three changes
        world = World(left=kill_after)
        try:
            with kept(tmp_path) as journal:
                carry_out(steps(world), host, journal)
        except Killed:
            world.left = 1000
            with kept(tmp_path) as journal:
                carry_out(steps(world), host, journal)
        world.left = 1000
        assert world.files == {"save": 1, "arm": 2, "endpoint": 3}
        assert world.plans == 3
        assert read(tmp_path).states == dict.fromkeys(NAMES, "done")
        with kept(tmp_path) as journal:
            take_back(steps(world), host, journal)
        assert (world.files, read(tmp_path).states) == ({}, {})


def test_taking_back_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    host, _ = a_host(tmp_path)
    for kill_after in range(4):
        world = World()
        with kept(tmp_path) as journal:
            carry_out(steps(world), host, journal)
        world.left = kill_after
        try:
            with kept(tmp_path) as journal:
                take_back(steps(world), host, journal)
        except Killed:
            world.left = 1000
            with kept(tmp_path) as journal:
                take_back(steps(world), host, journal)
        assert (world.files, read(tmp_path).states) == ({}, {})


def test_two_commands_at_once_are_one_too_many(tmp_path: Path) -> None:
    with kept(tmp_path), pytest.raises(AnotherWorks, match="wait for it"), kept(tmp_path):
        pass


@pytest.mark.parametrize("text", ["", "{", '{"v":2}', '{"v":1,"steps":{"save":{"state":"half"}}}', "[" * 100_000])
def test_a_journal_that_is_none_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / JOURNAL).parent.mkdir(parents=True)
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(JournalWrong, match=r"journal\.json"):
        read(tmp_path)


def test_facts_of_another_version_are_refused_with_their_step(tmp_path: Path) -> None:
    with kept(tmp_path) as journal:
        journal.begin("save", {"other": 1})
    with pytest.raises(JournalWrong, match="step save"):
        read(tmp_path).facts("save", Number)
