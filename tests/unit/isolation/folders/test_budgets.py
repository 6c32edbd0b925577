"""What several containers of a pod have together changes as a whole, is refused as a whole, and survives as a whole."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from msgspec import UNSET

from partage_isolation.errors import NoFolder, SpecRefused
from partage_isolation.store.specs import BUDGETS_FOLDER, FOLDER, Spec, Specs
from partage_isolation.wire.limits import lowered, spec_of
from partage_isolation.wire.messages import Prepare, SetLimits
from partage_plugins.vocabulary.gpu import GpuGrant
from partage_plugins.vocabulary.names import BudgetName, CardId, ContainerKey, ContainerName
from support.broker import CARD, pod

GIB = 1 << 30
A, B = ContainerKey("a" * 32), ContainerKey("b" * 32)
POD = BudgetName("pod")


def asked(key: ContainerKey, memory: int = GIB, *, gen: int = 1, budget: BudgetName | None = POD) -> Prepare:
    grant = GpuGrant(card=CARD, share_milli=300, limit_milli=700, memory_bytes=memory)
    return Prepare(key=key, pod=pod(), container=ContainerName(key[0]), gen=gen, grants=(grant,), budget=budget)


def first(memory: int = GIB) -> Spec:
    return spec_of(asked(A, memory), library="/lib/1", known=None)


def second(mate: Spec, memory: int = GIB, *, gen: int = 1) -> Spec:
    return spec_of(asked(B, memory, gen=gen), library="/lib/2", known=None, mate=mate)


def lower(spec: Spec, memory: int | None) -> Spec:
    return lowered(spec, SetLimits(key=spec.key, card=CARD, memory_bytes=memory))


def test_a_second_container_finds_what_root_lowered() -> None:
    mate = lower(first(), 100)
    spec = second(mate)
    assert (spec.key, spec.container, spec.library) == (B, "b", "/lib/2")
    assert spec.cards == mate.cards
    assert spec.budget_key == mate.budget_key
    assert spec_of(asked(B), library="/lib/2", known=spec, mate=mate) is spec


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (asked(B, 2 * GIB), "budget pod of pod train-0 has other grants with gen 1; a change needs a higher gen"),
        (asked(B, gen=0), "budget pod of pod train-0 has an allocation of gen 1; gen 0 is older"),
    ],
)
def test_other_limits_than_those_that_run_are_refused(question: Prepare, why: str) -> None:
    with pytest.raises(SpecRefused, match=why):
        spec_of(question, library="", known=None, mate=first())


def test_a_container_that_runs_does_not_change_its_budget() -> None:
    with pytest.raises(SpecRefused, match="is in budget pod, not in no budget"):
        spec_of(asked(A, gen=2, budget=None), library="", known=first())


def test_a_higher_gen_of_one_is_the_whole_budget_s() -> None:
    mate = lower(first(), 100)
    spec = second(mate, 2 * GIB, gen=2)
    assert mate.as_in(spec).cards[0].memory_in_force == 2 * GIB
    assert (mate.as_in(spec).gen, mate.as_in(spec).key) == (2, A)


def test_more_than_the_budget_was_granted_is_refused_in_its_name() -> None:
    with pytest.raises(SpecRefused, match="budget pod of pod train-0 was granted 1073741824 bytes"):
        lower(first(), GIB + 1)
    with pytest.raises(SpecRefused, match="budget pod of pod train-0 has no card GPU-none"):
        lowered(first(), SetLimits(key=A, card=CardId("GPU-none"), share_milli=UNSET))


def test_what_one_was_told_the_next_broker_knows_of_all(tmp_path: Path) -> None:
    specs, one = Specs(tmp_path), first()
    other = second(one)
    for spec in (one, other):
        specs.write(spec)
    changed = lower(other, 100)
    specs.write(changed)
    assert specs.load() == ((one.as_in(changed), changed), ())
    assert len(list((tmp_path / BUDGETS_FOLDER).iterdir())) == 1


def test_the_budget_s_file_goes_with_its_last_container(tmp_path: Path) -> None:
    specs, one = Specs(tmp_path), first()
    other = second(one)
    for spec in (one, other):
        specs.write(spec)
    specs.remove(one, is_last=False)
    assert specs.load() == ((other,), ())
    specs.remove(other)
    assert not list((tmp_path / BUDGETS_FOLDER).iterdir())


def test_a_budget_that_no_container_uses_is_forgotten(tmp_path: Path) -> None:
    specs = Specs(tmp_path)
    specs.write(first())
    (tmp_path / FOLDER / f"{A}.json").unlink()
    assert specs.load() == ((), ())
    assert not list((tmp_path / BUDGETS_FOLDER).iterdir())


@pytest.mark.parametrize("content", [None, b"{", b'{"gen": 1}'])
def test_a_container_whose_budget_is_not_known_has_nothing(tmp_path: Path, content: bytes | None) -> None:
    specs = Specs(tmp_path)
    specs.write(first())
    (file,) = (tmp_path / BUDGETS_FOLDER).iterdir()
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    found, faults = specs.load()
    assert found == ()
    assert "nothing is known of its budget pod" in faults[-1]


def test_a_change_that_finds_no_room_leaves_the_old_one_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs, one, writes = Specs(tmp_path), first(), [os.write]

    def full_for_budgets(descriptor: int, data: bytes) -> int:
        if BUDGETS_FOLDER in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return writes[0](descriptor, data)

    specs.write(one)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_for_budgets)
        with pytest.raises(NoFolder, match="No space left"):
            specs.write(lower(one, 100))
    assert specs.load() == ((one,), ())
