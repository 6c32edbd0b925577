"""Calls that are not ours are forwarded byte for byte, in any state of our own components."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_crishim.decisions import RESTORE_POD, STATUS, Code, Pass, Refuse, Rewrite
from partage_crishim.device_filter import DeviceFilter
from partage_crishim.rules.guard import GuardPolicy
from partage_plugins.errors import PluginHung
from support import wire
from unit.crishim.rules.allocations import allocation, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage

PLAIN = (
    Create(),
    Create(env=[("NVIDIA_VISIBLE_DEVICES", "all"), ("A", b"\xff")], privileged=True, capabilities=["ALL"]),
    Create(annotations={"nvidia.cdi.k8s.io/x": "all", "partage.dev/limit-milli": "5"}, mounts=[("/run/partage", "/")]),
    Create(unknown=wire.field(99, "later")),
)


def no_keys(stage: Stage) -> None:
    shutil.rmtree(stage.root / "etc")


def unreadable_keys(stage: Stage) -> None:
    for file in (stage.root / "etc/partage/keys.d").iterdir():
        file.write_text("garbage")


def kubelet_away(stage: Stage) -> None:
    stage.resources.away = True


def plugins_hang(stage: Stage) -> None:
    stage.fake.answer = PluginHung("gpu", "partage_adjust", "took longer than 2 s and was killed")


def folder_in_the_way(stage: Stage) -> None:
    (stage.root / "run/partage/crishim").mkdir()
    (stage.root / "run/partage/crishim/reserved").symlink_to(os.devnull)


def garbage_in_the_inventory(stage: Stage) -> None:
    stage.write_inventory("\0" * 1000)


def inventory_is_a_folder(stage: Stage) -> None:
    (stage.root / "run/partage/inventory.json").mkdir()


BROKEN: list[Callable[[Stage], None]] = [
    no_keys,
    unreadable_keys,
    kubelet_away,
    plugins_hang,
    folder_in_the_way,
    garbage_in_the_inventory,
    inventory_is_a_folder,
]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("create", PLAIN)
def test_on_a_node_without_cards(broken: Callable[[Stage], None], create: Create, stage: Stage) -> None:
    stage.no_inventory()
    broken(stage)
    stage.crishim().passes(create)


def test_even_if_every_part_of_ours_is_broken(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.no_inventory()
    crishim = stage.crishim()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    for part in (crishim.containerd, crishim.ledger, crishim.reservations, crishim.records, stage.host):
        for name in [name for name in dir(part) if not name.startswith("_")]:
            monkeypatch.setattr(part, name, broken)
    monkeypatch.setattr(DeviceFilter, "changes", broken)
    for create in PLAIN:
        crishim.passes(create)
    monkeypatch.setattr(crishim.inventory, "has_cards", broken)
    for create in PLAIN:
        crishim.passes(create)
    assert all(told.what == "defect" for told in stage.told)


@pytest.mark.parametrize("broken", [no_keys, unreadable_keys, plugins_hang, folder_in_the_way])
def test_on_a_node_with_cards_what_the_guard_does_not_touch(broken: Callable[[Stage], None], stage: Stage) -> None:
    broken(stage)
    crishim = stage.crishim()
    crishim.passes(Create())
    crishim.passes(Create(env=[("CUDA_VISIBLE_DEVICES", "0"), ("A", b"\xff")], privileged=True, pids=2))


@given(st.binary(max_size=300))
def test_on_a_node_without_cards_bytes_that_are_no_request_are_the_runtimes_to_refuse(message: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(root=Path(folder))
        stage.no_inventory()
        stage.crishim().passes(message)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Create().bytes()[:-3], "the bytes are no such message"),
        (Create(pod="their").bytes().replace(b"their", b"the\xffr"), "the pod's name is not UTF-8"),
        (Create(container="their").bytes().replace(b"their", b"the\xffr"), "the container's name is not UTF-8"),
    ],
)
def test_while_cards_are_guarded_a_request_that_cannot_be_read_is_refused(
    message: bytes, why: str, crishim: Crishim
) -> None:
    assert crishim.refusal(message) == (
        f"partage: this container's request cannot be read (CreateContainer: {why}), and this node's cards are "
        "guarded; correct the pod, or is this kubelet newer than crishim?"
    )


def test_bytes_that_are_no_request_and_name_an_allocation_are_refused(crishim: Crishim) -> None:
    whole = Create(annotations=signed(allocation())).bytes()
    assert crishim.refusal(whole[:-3]) == (
        "partage: a request that names an allocation or a claim cannot be read; is this kubelet newer than crishim?"
    )


def test_a_mention_of_the_annotation_elsewhere_claims_nothing(stage: Stage, crishim: Crishim) -> None:
    name = "alloc.partage.dev/allocation"
    crishim.passes(Create(env=[("WHAT", name)]))
    crishim.passes(Create(own_annotations={name: "{}"}))
    stage.no_inventory()
    stage.crishim().passes(Create(env=[("WHAT", name)], container=name))


class TestRestoring:
    """Nothing verified, reserved or enforces what a checkpoint contains."""

    def restore(self, **annotations: str) -> bytes:
        sandbox = b"".join(wire.field(7, wire.pair(key.replace("_", "/"), value)) for key, value in annotations.items())
        return wire.message((1, "/var/lib/checkpoint"), (2, sandbox), (5, b""))

    def test_a_pod_with_an_allocation_is_refused(self, crishim: Crishim) -> None:
        message = wire.message((1, "/x"), (2, wire.field(7, wire.pair("alloc.partage.dev/allocation", "{}"))))
        assert crishim.decision(message, RESTORE_POD) == Refuse(
            Code.FAILED_PRECONDITION,
            "partage: a pod with an allocation or a claim cannot be restored from a checkpoint; create it again, to be "
            "scheduled",
        )

    @pytest.mark.parametrize("broken", [no_keys, plugins_hang])
    def test_any_other_passes_while_the_guard_is_off(self, broken: Callable[[Stage], None], stage: Stage) -> None:
        stage.no_inventory()
        broken(stage)
        decision = stage.crishim().decision(self.restore(mine="1"), RESTORE_POD)
        assert isinstance(decision, Pass)

    def test_while_cards_are_guarded_every_pod_is_refused(self, stage: Stage, crishim: Crishim) -> None:
        """What its containers request is in the checkpoint."""
        assert crishim.decision(self.restore(mine="1"), RESTORE_POD) == Refuse(
            Code.FAILED_PRECONDITION,
            "partage: this node's cards are guarded, and what a pod that is restored from a checkpoint asks for can't "
            "be seen; create it again, or restore it on a node without cards",
        )
        decision = stage.crishim(guard=GuardPolicy(mode="off")).decision(self.restore(mine="1"), RESTORE_POD)
        assert isinstance(decision, Pass)


def test_a_call_that_is_not_ours_to_judge_passes(crishim: Crishim) -> None:
    assert isinstance(crishim.decision(Create(annotations=signed(allocation())), STATUS), Pass)


DEFECT = Refuse(
    Code.INTERNAL, "partage: crishim met a defect of its own on this container; its log has more. Please report it"
)


def defective(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError


def test_a_defect_of_ours_refuses_what_it_keeps_from_being_judged(
    stage: Stage, crishim: Crishim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crishim.containerd, "listing", defective)
    assert crishim.decision(Create(annotations=signed(allocation()))) == DEFECT
    crishim.passes(Create())
    (told,) = stage.told
    assert told.what == "defect"
    assert isinstance(told.error, ZeroDivisionError)


@pytest.mark.parametrize("part", ["without_cards", "rewritten"])
def test_and_what_it_keeps_from_being_guarded(
    part: str, stage: Stage, crishim: Crishim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeviceFilter, "changes", defective)
    asks_for_cards = Create(env=[("NVIDIA_VISIBLE_DEVICES", "all")])
    assert isinstance(crishim.decision(asks_for_cards), Rewrite)
    monkeypatch.setattr(f"partage_crishim.admission.{part}", defective)
    assert crishim.decision(asks_for_cards) == DEFECT
    stage.no_inventory()
    stage.crishim().passes(asks_for_cards)
