"""What crishim reports of itself is true, or absent."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable
from pathlib import Path

import pytest

from partage_base.condition import Fault, Guarded, decode_condition, fault
from partage_base.cri import RuntimeConfig
from partage_base.daemon.health import Health
from partage_crishim.condition import ConditionFile, RuntimeProbe
from partage_crishim.proxy import Counters
from support.sockets import listening

KEYS = Fault("keys", "no key verifies")


async def says_nothing() -> RuntimeConfig:
    return RuntimeConfig()


def upkeep(path: Path, health: Health, faults: list[Fault], keys: Iterable[str] = ()) -> ConditionFile:
    sight = RuntimeProbe(path.parent / "runtime.sock", Counters(), says_nothing)
    return ConditionFile(path, health, sight, lambda: [*faults], keys=lambda: keys)


def causes(path: Path) -> list[str]:
    condition = decode_condition(path.read_bytes())
    assert condition is not None
    return [each.cause for each in condition.faults]


def test_what_is_wrong_is_written_and_keeps_it_from_being_ready(tmp_path: Path) -> None:
    path, health, faults = tmp_path / "own/condition.json", Health(), [KEYS]
    looking = upkeep(path, health, faults)
    asyncio.run(looking.look())
    assert causes(path) == ["keys", "runtime"]
    assert "no key verifies" in health.against_ready["allocations"]
    faults.clear()
    asyncio.run(looking.look())
    assert causes(path) == ["runtime"]


def test_a_container_that_was_kept_from_cards_is_written_at_once(tmp_path: Path) -> None:
    path, guarded = tmp_path / "condition.json", [Guarded("team", "greedy", "main")]
    sight = RuntimeProbe(tmp_path / "runtime.sock", Counters(), says_nothing)
    looking = ConditionFile(path, Health(), sight, list, guarded=lambda: (*guarded,))
    for expected in ([*guarded], []):
        asyncio.run(looking.look())
        condition = decode_condition(path.read_bytes())
        assert condition is not None
        assert list(condition.guarded) == expected
        guarded.clear()


async def _restores_until_mended(path: Path) -> list[list[str]]:
    """The faults before and after a runtime that answers is told to restore nothing."""
    setup, told = [RuntimeConfig(restores=True), RuntimeConfig(restores=False)], list[list[str]]()

    async def config() -> RuntimeConfig:
        return setup.pop(0)

    runtime = path.parent / "runtime.sock"
    with listening(runtime):
        looking = ConditionFile(path, Health(), RuntimeProbe(runtime, Counters(), config), list)
        for _ in range(2):
            await looking.look()
            told.append(causes(path))
    return told


def test_a_runtime_that_makes_containers_from_checkpoints_keeps_it_from_honouring_allocations(tmp_path: Path) -> None:
    assert asyncio.run(_restores_until_mended(tmp_path / "condition.json")) == [["restore"], []]


def test_it_says_by_which_keys_it_believes_allocations(tmp_path: Path) -> None:
    path, keys = tmp_path / "condition.json", ["b" * 16, "a" * 16]
    looking = upkeep(path, Health(), [], keys)
    for said in (("a" * 16, "b" * 16), ("b" * 16,)):
        asyncio.run(looking.look())
        condition = decode_condition(path.read_bytes())
        assert condition is not None
        assert condition.keys == said
        keys.remove("a" * 16) if len(keys) > 1 else None


def test_on_a_full_disk_what_was_said_before_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, health, faults = tmp_path / "condition.json", Health(), list[Fault]()
    looking = upkeep(path, health, faults)
    asyncio.run(looking.look())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    faults.append(KEYS)
    with monkeypatch.context() as broken:
        broken.setattr("partage_crishim.condition.write_whole", full)
        asyncio.run(looking.look())
    assert not path.exists()
    assert "is the disk full" in health.against_ready["allocations"]
    asyncio.run(looking.look())
    assert causes(path) == ["keys", "runtime"]


def test_a_sentence_of_any_length_and_content_is_one_line_that_can_be_written() -> None:
    made = fault("settings", "a\nb" + "x" * 5000)
    assert made.sentence.isprintable()
    assert made.sentence.startswith("a b")
    assert len(made.sentence) == 512
