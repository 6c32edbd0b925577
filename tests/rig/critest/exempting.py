"""Which specs do not pass, and why: exceptions.toml, read into types."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec

from rig.critest.results import Outcome

LIST: Final = Path(__file__).with_name("exceptions.toml")


@dataclass(frozen=True)
class Exemption:
    """One spec that is expected to end otherwise than by passing, always or where a condition holds."""

    spec: str
    outcome: Outcome
    reason: str
    when: str = ""


class _Group(msgspec.Struct, forbid_unknown_fields=True):
    """Specs that share a reason, as they stand in the file."""

    specs: Annotated[list[str], msgspec.Meta(min_length=1)]
    outcome: Outcome
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    when: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    exempt: list[_Group]


def exemptions(path: Path = LIST) -> tuple[Exemption, ...]:
    """Those of the file, one for each spec and condition."""
    file = msgspec.convert(tomllib.loads(path.read_text()), _File)
    return tuple(
        Exemption(spec, group.outcome, group.reason, group.when) for group in file.exempt for spec in group.specs
    )
