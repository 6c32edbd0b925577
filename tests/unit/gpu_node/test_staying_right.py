"""The plugin's cache across containers: nothing is looked up twice, and no change is missed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from partage_gpu.node import minors, nvidia_specs, spec_file, stability
from partage_gpu.node.spec_file import OwnKind
from partage_gpu.node.stability import are_settled, facts_of
from partage_plugins import Refused
from unit.gpu_node.nodes import CARDS, FIRST, SAMPLES, SECOND, MadeNode, information, part

FIRST_CARD, SECOND_CARD = CARDS
SPEC = (SAMPLES / "nvidia.json").read_text()


@pytest.fixture
def own(node: MadeNode, monkeypatch: pytest.MonkeyPatch) -> OwnKind:
    """An OwnKind on a node with a driver, where every change before `ticked` counts as settled."""
    monkeypatch.setattr(stability, "_SETTLED_NS", -(1 << 62))
    own = OwnKind(node.with_driver().root, "/")
    ensure(own)
    ensure(own)  # the first call has written the file and so changed its folder
    ticked(node)
    return own


def ensure(own: OwnKind) -> None:
    own.ensure((FIRST_CARD,), part())


def ticked(node: MadeNode) -> None:
    """Waits for the file system's clock to advance: a kernel may give all changes of one tick the same time."""
    mark = node.root / "mark"
    mark.touch()
    first = mark.stat().st_ctime_ns
    while mark.stat().st_ctime_ns == first:
        mark.touch()


def looks(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[object]:
    """Records the arguments of further calls of a module's function."""
    asked: list[object] = []
    real: Callable[..., object] = getattr(module, name)

    def noting(first: object, *more: object) -> object:
        asked.append(first)
        return real(first, *more)

    monkeypatch.setattr(module, name, noting)
    return asked


def test_where_nothing_changed_only_the_containers_own_card_is_looked_at(
    own: OwnKind, node: MadeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, ours = looks(monkeypatch, minors, "_text"), looks(monkeypatch, spec_file, "_read")
    folders = looks(monkeypatch, nvidia_specs, "_paths")
    ensure(own)
    assert texts == [f"{node.root}/proc/driver/nvidia/gpus/0000:18:00.0/information"]
    assert not ours
    assert not folders


def test_a_spec_of_nvidias_is_read_again_only_when_it_is_another(
    own: OwnKind, node: MadeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = node.write("etc/cdi/nvidia.json", SPEC)
    ensure(own)
    ensure(own)  # the first call has written ours, and so changed its folder
    read = looks(monkeypatch, nvidia_specs, "_nvidias")
    ensure(own)
    assert not read
    ticked(node)
    with file.open("r+") as spec:  # in place, as some programs write it
        spec.write(SPEC.replace('"0.5.0"', '"0.6.0"'))
    ensure(own)
    assert '"0.6.0"' in node.own_spec.read_text()


def test_a_spec_of_nvidias_that_comes_later_is_followed_and_one_that_goes_is_forgotten(
    own: OwnKind, node: MadeNode
) -> None:
    from_driver = node.own_spec.read_bytes()
    file = node.write("etc/cdi/nvidia.json", SPEC)
    ensure(own)
    assert node.own_spec.read_bytes() != from_driver
    ticked(node)
    file.unlink()
    ensure(own)
    assert node.own_spec.read_bytes() == from_driver


def test_a_spec_that_others_may_write_from_now_on_is_not_believed_any_more(own: OwnKind, node: MadeNode) -> None:
    file = node.write("etc/cdi/nvidia.json", SPEC)
    ensure(own)
    ticked(node)
    file.chmod(0o666)
    with pytest.raises(Refused, match="others than root may write it"):
        ensure(own)
    with pytest.raises(Refused, match="others than root may write it"):
        ensure(own)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: file.write_text("{}")], ids=["gone", "changed"])
def test_our_file_is_right_again_for_the_next_container(
    own: OwnKind, node: MadeNode, spoil: Callable[[Path], object]
) -> None:
    right = node.own_spec.read_bytes()
    spoil(node.own_spec)
    ensure(own)
    assert node.own_spec.read_bytes() == right


def test_a_link_to_the_right_text_is_still_replaced(own: OwnKind, node: MadeNode, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(node.own_spec.read_bytes())
    node.own_spec.unlink()
    node.own_spec.symlink_to(target)
    ensure(own)
    assert not node.own_spec.is_symlink()


def test_a_card_that_was_exchanged_in_its_slot_is_not_attached(own: OwnKind, node: MadeNode) -> None:
    node.write("proc/driver/nvidia/gpus/0000:18:00.0/information", information(1, "0000:18:00.0", SECOND))
    with pytest.raises(Refused, match=f"no device node for card {FIRST}"):
        ensure(own)


def test_a_card_whose_number_is_another_since_is_attached_by_its_new_one(own: OwnKind, node: MadeNode) -> None:
    node.write("proc/driver/nvidia/gpus/0000:18:00.0/information", information(7, "0000:18:00.0", FIRST))
    node.device("dev/nvidia7")
    ensure(own)
    assert "/dev/nvidia7" in node.own_spec.read_text()


def test_a_card_whose_device_node_is_gone_is_refused_and_is_back_with_it(own: OwnKind, node: MadeNode) -> None:
    (node.root / "dev/nvidia1").unlink()
    with pytest.raises(Refused, match=f"no device node for card {FIRST}"):
        ensure(own)
    node.device("dev/nvidia1")
    ensure(own)
    assert FIRST in node.own_spec.read_text()


def test_what_happens_to_another_card_is_seen_when_that_one_is_granted(own: OwnKind, node: MadeNode) -> None:
    (node.root / "dev/nvidia0").unlink()
    ensure(own)
    with pytest.raises(Refused, match=f"no device node for card {SECOND}"):
        own.ensure((SECOND_CARD,), part())


def test_what_changed_just_now_is_not_settled(tmp_path: Path) -> None:
    assert not are_settled([facts_of(str(tmp_path))])
    assert are_settled([None, (1, 2, 3)])
