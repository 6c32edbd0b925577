"""A container's log over attempts and rotations: all of it, its end, and what comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from partage_cli.machine.runtime.logs import followed, forget_attempts, rotate
from partage_cli.machine.wire.messages import LogLine


def write(path: Path, *texts: object) -> None:
    with path.open("a") as file:
        file.writelines(f"2026-01-02T03:04:05Z stdout F {text}\n" for text in texts)


async def told(folder: Path, tail: int | None = None) -> list[str]:
    return [line.data.decode() async for line in followed(folder, tail=tail)]


async def following(lines: AsyncIterator[LogLine], count: int) -> list[str]:
    return [(await anext(lines)).data.decode() for _ in range(count)]


async def test_all_attempts_are_told_in_order_with_what_was_set_aside(tmp_path: Path) -> None:
    for name, text in {"10.log": "e", "2.log": "d", "2.log.1": "c", "0.log": "a", "1.log": "b", "x.log": "no"}.items():
        write(tmp_path / name, text)
    assert await told(tmp_path) == list("abcde")


@pytest.mark.parametrize("tail", [0, 1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("size", [1, 60_000])
async def test_the_last_lines_are_told_over_as_many_files_as_it_takes(tmp_path: Path, tail: int, size: int) -> None:
    texts = [f"{each}" * size for each in range(5)]
    write(tmp_path / "0.log", *texts[:2])
    write(tmp_path / "1.log.1", *texts[2:4])
    write(tmp_path / "1.log")
    write(tmp_path / "2.log", texts[4])
    joined = "".join(await told(tmp_path, tail))
    assert joined == "".join(texts[max(0, 5 - tail) :])


async def test_what_comes_is_followed_over_a_rotation_and_a_new_attempt_until_the_end(tmp_path: Path) -> None:
    log, until = tmp_path / "0.log", asyncio.Event()
    write(log, "a")
    lines = followed(tmp_path, until=until)
    assert await following(lines, 1) == ["a"]
    write(log, "b")
    assert await following(lines, 1) == ["b"]
    log.rename(tmp_path / "0.log.1")
    write(tmp_path / "0.log.1", "c")
    assert await following(lines, 1) == ["c"]
    write(log, "d")
    write(tmp_path / "1.log", "e", "f")
    assert await following(lines, 3) == ["d", "e", "f"]
    with (tmp_path / "1.log").open("a") as file:
        file.write("2026-01-02T03:04:05Z stdout F cut")
    until.set()
    assert [line.data async for line in lines] == [b"cut"]


async def test_a_log_that_does_not_stand_there_yet_is_waited_for(tmp_path: Path) -> None:
    until = asyncio.Event()
    lines = followed(tmp_path, until=until)
    first = asyncio.ensure_future(following(lines, 1))
    await asyncio.sleep(0)
    write(tmp_path / "0.log", "a")
    assert await first == ["a"]
    until.set()
    assert [line async for line in lines] == []


async def test_a_follower_of_a_log_that_was_removed_goes_on_with_the_next(tmp_path: Path) -> None:
    until = asyncio.Event()
    write(tmp_path / "0.log", "a")
    lines = followed(tmp_path, until=until)
    assert await following(lines, 1) == ["a"]
    write(tmp_path / "1.log", "b")
    (tmp_path / "0.log").unlink()
    assert await following(lines, 1) == ["b"]
    until.set()
    assert [line async for line in lines] == []


class Reopened:
    """The runtime, as far as a rotation asks it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def reopen_log(self, container_id: str) -> None:
        self.asked.append(container_id)


async def test_a_log_that_grew_too_large_is_set_aside_once(tmp_path: Path) -> None:
    log, runtime = tmp_path / "0.log", Reopened()
    write(log, "x" * 100)
    assert not await rotate(runtime, "c", log, most_bytes=1000)
    assert await rotate(runtime, "c", log, most_bytes=100)
    assert (runtime.asked, log.exists(), (tmp_path / "0.log.1").exists()) == (["c"], False, True)


async def test_a_rotation_that_died_half_way_is_finished_by_the_next(tmp_path: Path) -> None:
    runtime = Reopened()
    write(tmp_path / "0.log.1", "x")
    assert await rotate(runtime, "c", tmp_path / "0.log")
    assert runtime.asked == ["c"]
    assert not await rotate(runtime, "c", tmp_path / "7.log")


def test_of_old_attempts_only_the_last_are_kept(tmp_path: Path) -> None:
    for name in ("0.log", "0.log.1", "1.log", "2.log", "10.log", "notes"):
        write(tmp_path / name, "x")
    forget_attempts(tmp_path, kept=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10.log", "2.log", "notes"]
