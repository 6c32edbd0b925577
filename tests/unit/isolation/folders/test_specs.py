"""What is granted, lowered and stored of containers and of budgets."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from partage_isolation.errors import NoFolder, SpecRefused
from partage_isolation.store.specs import BUDGETS_FOLDER, FOLDER, Spec, Specs
from partage_isolation.wire.limits import lowered, spec_of
from partage_isolation.wire.messages import Prepare, SetLimits
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.names import BudgetName, CardId, ContainerKey, ContainerName, Namespace, PodName, PodUid
from partage_plugins.api.pods import Gang, PodRef
from support.broker import CARD, pod

KEY = ContainerKey("ab" * 16)
GIB = 1 << 30


def grant(card: str, memory: int, share: int = 100) -> GpuGrant:
    return GpuGrant(card=CardId(card), share_milli=share, limit_milli=1000, memory_bytes=memory)


def question(*grants: GpuGrant, gen: int = 1) -> Prepare:
    pod = PodRef(namespace=Namespace("n"), name=PodName("p"), uid=PodUid("u"))
    return Prepare(key=KEY, pod=pod, container=ContainerName("c"), gen=gen, grants=grants)


def spec(*grants: GpuGrant, gen: int = 1, known: Spec | None = None) -> Spec:
    return spec_of(question(*grants, gen=gen), library="/lib/1", known=known)


def lower(found: Spec, card: str, memory: int | None) -> Spec:
    return lowered(found, SetLimits(key=KEY, card=CardId(card), memory_bytes=memory))


def cards(found: Spec) -> list[tuple[str, int]]:
    return [(card.id, card.memory) for card in found.cards]


def test_asked_again_it_is_the_same() -> None:
    first = spec(grant("a", GIB))
    assert spec(grant("a", GIB), known=first) is first


def test_an_older_allocation_is_refused() -> None:
    with pytest.raises(SpecRefused, match="gen 2 is older"):
        spec(grant("a", 9 * GIB), gen=2, known=spec(grant("a", GIB), gen=3))


def test_other_grants_need_a_higher_gen() -> None:
    first = spec(grant("a", GIB))
    with pytest.raises(SpecRefused, match="needs a higher gen"):
        spec(grant("a", 2 * GIB), known=first)
    assert cards(spec(grant("a", 2 * GIB), gen=2, known=first)) == [("a", 2 * GIB)]


def test_cards_keep_their_numbers_whatever_order_they_come_in() -> None:
    first = spec(grant("a", GIB), grant("b", GIB))
    assert cards(spec(grant("c", GIB), grant("b", 2 * GIB), gen=2, known=first)) == [
        ("a", 0),
        ("b", 2 * GIB),
        ("c", GIB),
    ]


def test_several_grants_of_one_card_add_up() -> None:
    (card,) = spec(grant("a", GIB, 600), grant("a", GIB, 600)).cards
    assert (card.memory, card.share, card.limit) == (2 * GIB, 1000, 1000)


def test_the_highest_grant_is_remembered() -> None:
    first = spec(grant("a", 4 * GIB))
    assert spec(grant("a", GIB), gen=2, known=first).cards[0].most_memory == 4 * GIB


def test_what_was_written_is_loaded(tmp_path: Path) -> None:
    one = lower(spec(grant("a", GIB), grant("b", 2 * GIB)), "b", 7)
    Specs(tmp_path).write(one)
    assert Specs(tmp_path).load() == ((one,), ())
    Specs(tmp_path).remove(one)
    Specs(tmp_path).remove(one)
    assert Specs(tmp_path).load() == ((), ())


def test_its_gang_survives_and_a_file_of_an_older_broker_has_none(tmp_path: Path) -> None:
    train = Gang(Namespace("team"), "train", 2)
    one = spec_of(msgspec.structs.replace(question(grant("a", GIB)), gang=train), library="/lib/1", known=None)
    assert one.gang == train
    Specs(tmp_path).write(one)
    assert Specs(tmp_path).load() == ((one,), ())
    older = msgspec.json.decode(msgspec.json.encode(spec(grant("a", GIB))), type=dict[str, object])
    del older["gang"]
    assert msgspec.convert(older, Spec).gang is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"key": "zz"}', b"\xff\xfe", b'{"v":1,"key":"' + b"cd" * 16])
def test_a_file_that_can_t_be_read_is_told_and_set_aside(tmp_path: Path, content: bytes) -> None:
    specs = Specs(tmp_path)
    specs.write(spec(grant("a", GIB)))
    bad = tmp_path / "run/partage/state/containers" / f"{'cd' * 16}.json"
    bad.write_bytes(content)
    found, (fault,) = specs.load()
    assert [one.key for one in found] == [KEY]
    assert str(bad) in fault
    assert specs.load() == (found, ())


def test_a_file_of_another_container_is_not_believed(tmp_path: Path) -> None:
    specs = Specs(tmp_path)
    specs.write(spec(grant("a", GIB)))
    folder = tmp_path / "run/partage/state/containers"
    (folder / f"{KEY}.json").rename(folder / f"{'cd' * 16}.json")
    assert specs.load()[0] == ()


def test_one_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    specs = Specs(tmp_path)
    specs.write(spec(grant("a", GIB)))
    (tmp_path / "run/partage/state/containers" / f".{KEY}.99").write_text("half")
    assert len(specs.load()[0]) == 1


def test_a_full_disk_is_one_clear_error_and_the_old_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    specs, first = Specs(tmp_path), spec(grant("a", GIB))
    specs.write(first)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(NoFolder, match="No space left"):
            specs.write(spec(grant("a", 2 * GIB), gen=2, known=first))
    assert specs.load()[0] == (first,)


# ---- Lower limits ----------------------------------------------------------------------------------------------------


ASKED = Prepare(
    key=KEY,
    pod=pod(),
    container=ContainerName("main"),
    gen=3,
    grants=(
        GpuGrant(card=CARD, share_milli=300, limit_milli=700, memory_bytes=1000),
        GpuGrant(card=CardId("GPU-other"), share_milli=1000, limit_milli=1000, memory_bytes=1000),
    ),
)
SPEC = spec_of(ASKED, library="", known=None)


def said(**limits: int | None) -> SetLimits:
    return SetLimits(key=KEY, card=CARD, **limits)


def in_force(spec: Spec) -> tuple[int, int, int]:
    card = spec.cards[0]
    return card.memory_in_force, card.share_in_force, card.limit_in_force


_AMOUNT = st.one_of(st.none(), st.integers(0, 1000))


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"memory_bytes": _AMOUNT, "share_milli": _AMOUNT, "limit_milli": _AMOUNT})
    )
)
def test_nothing_is_ever_above_what_was_granted_nor_a_share_above_its_limit(
    changes: list[dict[str, int | None]],
) -> None:
    spec = SPEC
    for change in changes:
        before = spec
        try:
            spec = lowered(spec, said(**change))
        except SpecRefused:
            continue
        memory, share, limit = in_force(spec)
        assert memory <= 1000
        assert share <= min(300, limit)
        assert limit <= 700
        for name, field in (
            ("memory_bytes", "lowered"),
            ("share_milli", "lowered_share"),
            ("limit_milli", "lowered_limit"),
        ):
            now = getattr(spec.cards[0], field)
            assert now == change.get(name, getattr(before.cards[0], field))
        assert spec.cards[1] == SPEC.cards[1]


def test_nothing_named_is_nothing_changed() -> None:
    assert lowered(SPEC, said()) == SPEC
    assert said().memory_bytes is UNSET


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"memory_bytes": 1001}, "is more, which only an allocation can give"),
        ({"share_milli": 301}, "301 is more, which only an allocation can give"),
        ({"limit_milli": 701}, "701 is more, which only an allocation can give"),
        ({"share_milli": 300, "limit_milli": 200}, "share 300 of card .* would be above its limit 200; lower both"),
    ],
)
def test_more_than_was_granted_is_refused(limits: dict[str, int | None], why: str) -> None:
    with pytest.raises(SpecRefused, match=why):
        lowered(SPEC, said(**limits))


def test_a_card_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(SpecRefused, match="has no card GPU-none"):
        lowered(SPEC, SetLimits(key=KEY, card=CardId("GPU-none"), share_milli=1))


def test_the_same_grants_again_leave_it_lowered_and_a_higher_gen_does_not() -> None:
    spec = lowered(SPEC, said(share_milli=100, limit_milli=200, memory_bytes=500))
    assert in_force(spec_of(ASKED, library="", known=spec)) == (500, 100, 200)
    assert in_force(spec_of(replace(ASKED, gen=4), library="", known=spec)) == (1000, 300, 700)


# ---- Budgets ---------------------------------------------------------------------------------------------------------


A, B = ContainerKey("a" * 32), ContainerKey("b" * 32)
POD = BudgetName("pod")


def asked(key: ContainerKey, memory: int = GIB, *, gen: int = 1, budget: BudgetName | None = POD) -> Prepare:
    grant = GpuGrant(card=CARD, share_milli=300, limit_milli=700, memory_bytes=memory)
    return Prepare(key=key, pod=pod(), container=ContainerName(key[0]), gen=gen, grants=(grant,), budget=budget)


def first(memory: int = GIB) -> Spec:
    return spec_of(asked(A, memory), library="/lib/1", known=None)


def second(mate: Spec, memory: int = GIB, *, gen: int = 1) -> Spec:
    return spec_of(asked(B, memory, gen=gen), library="/lib/2", known=None, mate=mate)


def lower_budget(spec: Spec, memory: int | None) -> Spec:
    return lowered(spec, SetLimits(key=spec.key, card=CARD, memory_bytes=memory))


def test_a_second_container_finds_what_root_lowered() -> None:
    mate = lower_budget(first(), 100)
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
    mate = lower_budget(first(), 100)
    spec = second(mate, 2 * GIB, gen=2)
    assert mate.as_in(spec).cards[0].memory_in_force == 2 * GIB
    assert (mate.as_in(spec).gen, mate.as_in(spec).key) == (2, A)


def test_more_than_the_budget_was_granted_is_refused_in_its_name() -> None:
    with pytest.raises(SpecRefused, match="budget pod of pod train-0 was granted 1073741824 bytes"):
        lower_budget(first(), GIB + 1)
    with pytest.raises(SpecRefused, match="budget pod of pod train-0 has no card GPU-none"):
        lowered(first(), SetLimits(key=A, card=CardId("GPU-none"), share_milli=UNSET))


def test_what_one_was_told_the_next_broker_knows_of_all(tmp_path: Path) -> None:
    specs, one = Specs(tmp_path), first()
    other = second(one)
    for spec in (one, other):
        specs.write(spec)
    changed = lower_budget(other, 100)
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
            specs.write(lower_budget(one, 100))
    assert specs.load() == ((one,), ())
