"""Specifications of containers, a file for each: the broker rebuilds its accounting from them.

A file is replaced atomically, so that a killed broker leaves the old one or the new. Limits come only from these files;
those of a budget are in its own file, not in those of its containers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from partage_base.files import write_whole
from partage_isolation.errors import NoFolder
from partage_isolation.ledger.budget import CardSpec
from partage_isolation.names import BudgetKey, budget_key, own_budget
from partage_plugins.api.claims import ClaimUid
from partage_plugins.api.names import (
    BudgetNameText,
    CardId,
    ContainerKey,
    ContainerKeyText,
    ContainerName,
)
from partage_plugins.api.pods import Gang, PodRef

FOLDER: Final = "run/partage/state/containers"
BUDGETS_FOLDER: Final = "run/partage/state/budgets"
_SUFFIX: Final = ".json"


CheckpointStand = Literal["none", "on-card", "on-host"]


class EngineContainer(Struct, frozen=True):
    """A container of an engine that no runtime lists, such as Docker, as reported by a hook."""

    id: str
    pid: int
    """Its first process."""
    start: int
    """Start time of that process, which tells it from another with the same pid."""


class Spec(Struct, frozen=True, kw_only=True):
    """One container. A card's index in `cards` is its number, which never changes."""

    v: int = 1
    key: ContainerKeyText
    pod: PodRef
    container: ContainerName
    gen: int
    cards: tuple[CardSpec, ...]
    """The budget's cards, where it uses one."""
    library: str
    """The folder of its version of the library."""
    budget: BudgetNameText | None = None
    gang: Gang | None = None
    is_claim: bool = False
    """Not one container: all that have the claim named by `pod`."""
    is_released: bool = False
    """For a claim: it is no longer needed."""
    by_hook: bool = False
    """For a claim: only containers that a hook reported have it."""
    ends_with_last: bool = False
    """For such a claim: the first container that enters releases it."""
    engine_container: str | None = None
    """For such a claim: the only container that may enter it; None for any."""
    engine_containers: tuple[EngineContainer, ...] = ()
    """For such a claim: containers that entered and were not seen to have ended."""
    is_suspended: bool = False
    """Its memory stays off the card until root resumes it."""
    checkpoint: CheckpointStand = "none"
    """Where memory is that the driver moves; its room on the card is free for others once it is gone."""

    @property
    def claim(self) -> ClaimUid | None:
        return ClaimUid(self.pod.uid) if self.is_claim else None

    @property
    def moves(self) -> bool:
        return any(card.movable for card in self.cards)

    def card(self, card: CardId) -> CardSpec | None:
        return next((each for each in self.cards if each.id == card), None)

    @property
    def budget_key(self) -> BudgetKey:
        return own_budget(self.key) if self.budget is None else budget_key(self.pod.uid, self.budget)

    def as_in(self, budget: Spec | BudgetSpec) -> Spec:
        """The same container, with its budget's grants."""
        if (self.gen, self.cards) == (budget.gen, budget.cards):
            return self
        return msgspec.structs.replace(self, gen=budget.gen, cards=budget.cards)


class BudgetSpec(Struct, frozen=True, kw_only=True):
    """Grants that several containers share: one file, so that a change is atomic."""

    v: int = 1
    gen: int
    cards: tuple[CardSpec, ...]


class Specs:
    def __init__(self, root: Path) -> None:
        self._containers, self._budgets = root / FOLDER, root / BUDGETS_FOLDER

    def load(self) -> tuple[tuple[Spec, ...], tuple[str, ...]]:
        """Load all readable specifications, with a message for each unreadable one, which is set aside."""
        found, faults = list[Spec](), list[str]()
        budgets = {BudgetKey(path.stem): budget for path, budget in _read_all(self._budgets, BudgetSpec, faults)}
        for path, spec in _read_all(self._containers, Spec, faults):
            if spec.key != path.stem:
                faults.append(_set_aside(path, f"it is of container {spec.key}"))
            elif spec.budget is None:
                found.append(spec)
            elif spec.budget_key in budgets:
                found.append(spec.as_in(budgets[spec.budget_key]))
            else:
                faults.append(_set_aside(path, f"nothing is known of its budget {spec.budget}"))
        for key in budgets.keys() - {spec.budget_key for spec in found}:
            _remove(self._budget(key))
        return tuple(found), tuple(faults)

    def write(self, spec: Spec) -> None:
        """Write it, with its budget's grants; raises `NoFolder`."""
        if spec.budget is None:
            _write(self._container(spec.key), spec)
            return
        # Container first: it counts only once its budget is there, and a stored budget always has a container.
        _write(self._container(spec.key), msgspec.structs.replace(spec, cards=()))
        _write(self._budget(spec.budget_key), BudgetSpec(gen=spec.gen, cards=spec.cards))

    def remove(self, spec: Spec, *, is_last: bool = True) -> None:
        """Remove its file; with `is_last` also its budget's, which no other container uses."""
        _remove(self._container(spec.key))
        if spec.budget is not None and is_last:
            _remove(self._budget(spec.budget_key))

    def _container(self, key: ContainerKey) -> Path:
        return self._containers / f"{key}{_SUFFIX}"

    def _budget(self, key: BudgetKey) -> Path:
        return self._budgets / f"{key}{_SUFFIX}"


FileT = TypeVar("FileT", Spec, BudgetSpec)


def _read_all(folder: Path, form: type[FileT], faults: list[str]) -> Iterator[tuple[Path, FileT]]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        try:
            yield path, msgspec.json.decode(path.read_bytes(), type=form)
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            faults.append(_set_aside(path, str(error)))


def _set_aside(path: Path, why: str) -> str:
    with contextlib.suppress(OSError):
        path.rename(path.with_suffix(".damaged"))
    return f"{path} can't be read ({why}); its container gets no memory until it is created again"


def _write(path: Path, content: Struct) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, msgspec.json.encode(content))
    except OSError as error:
        raise NoFolder(f"cannot write {path}: {error.strerror}; make room there") from error


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
