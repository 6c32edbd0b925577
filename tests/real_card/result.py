"""The file that a run leaves: where it ran, and each row's answer. It is written whole after each row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from partage_base.files import write_whole

VERSION: Final = 1
State = Literal["answered", "absent", "failed", "hung", "no time"]
"""What became of a row: it was answered; the machine lacks something; its program failed; was ended; was not begun."""


class Answer(Struct, frozen=True, kw_only=True):
    row: str
    part: str
    state: State
    seconds: float = 0.0
    agrees: bool | None = None
    """None: nothing was expected, or only a card can tell and this was none."""
    found: str = ""
    """In words; where it failed, why."""
    facts: dict[str, Any] = {}
    only_card: bool = False
    """The answer of a simulated card to what only a real one knows."""


class Result(Struct, frozen=True, kw_only=True):
    v: int = VERSION
    simulated: bool
    commit: str
    machine: dict[str, Any]
    """Card, driver and kernel; nothing that identifies the machine."""
    before: dict[str, Any]
    after: dict[str, Any] = {}
    """The card's settings and processes, before the first row and after the last."""
    answers: tuple[Answer, ...] = ()

    @property
    def left_as_found(self) -> bool:
        return bool(self.after) and self.after == self.before


def with_answer(result: Result, answer: Answer) -> Result:
    """An earlier answer of the row is replaced."""
    others = tuple(each for each in result.answers if each.row != answer.row)
    return msgspec.structs.replace(result, answers=(*others, answer))


def write(path: Path, result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def read(path: Path) -> Result:
    """Raises `msgspec.MsgspecError` for what is no result."""
    return msgspec.json.decode(path.read_bytes(), type=Result)
