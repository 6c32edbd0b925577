"""What the broker is told of a container: what changes it, what is refused, and how it survives."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest

from partage_isolation.errors import NoFolder, SpecRefused
from partage_isolation.store.specs import Spec, Specs
from partage_isolation.wire.limits import lowered, spec_of
from partage_isolation.wire.messages import Prepare, SetLimits
from partage_plugins.vocabulary.gpu import GpuGrant
from partage_plugins.vocabulary.names import CardId, ContainerKey, ContainerName, Namespace, PodName, PodUid
from partage_plugins.vocabulary.pods import Gang, PodRef

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
