"""A fault affects exactly the processes and cards that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.errors import ControlRefused
from partage_simgpu.node import SimulatedNode
from simgpu.daemon.node_file import GONE, HEALTHY, LOST, RUNNING, Event
from simgpu.daemon.users import User, small_node, status, until, used
from simgpu.daemon.wire import BLOCK, Ask, Caller, Result
from support.simgpu import card, simulated_node

ILLEGAL_ADDRESS, LAUNCH_FAILED, ECC_UNCORRECTABLE, NVLINK, UNAVAILABLE = 700, 719, 214, 220, 46
XID, DOUBLE_BIT, SINGLE_BIT = 0x8, 0x2, 0x1
FELL_OFF = 79


@pytest.fixture
def caller(node: SimulatedNode) -> Iterator[Caller]:
    with Caller(node.root) as caller:
        caller.call(Ask.ATTACH)
        yield caller


def _told(caller: Caller) -> list[tuple[int, int, int]]:
    node = caller.node()
    events: list[Event] = node.event[: node.events]
    return [(event.type, event.data, event.card) for event in events]


def _fault(caller: Caller, card: int = 0) -> int:
    return int(caller.node().card[card].fault[0])


@pytest.mark.parametrize(
    ("xid", "answer"),
    [
        (13, LAUNCH_FAILED),
        (31, ILLEGAL_ADDRESS),
        (43, LAUNCH_FAILED),
        (45, LAUNCH_FAILED),
        (48, ECC_UNCORRECTABLE),
        (68, LAUNCH_FAILED),
        (74, NVLINK),
        (94, ECC_UNCORRECTABLE),
        (95, ECC_UNCORRECTABLE),
        (63, 0),
        (64, 0),
        (1234, 0),
    ],
)
def test_an_xid_is_told_and_does_what_it_means(node: SimulatedNode, caller: Caller, xid: int, answer: int) -> None:
    node.control(f"xid 0 {xid}")
    assert _told(caller) == [(XID, xid, 0)]
    assert _fault(caller) == answer
    assert caller.node().card[0].last_xid == xid
    assert caller.node().card[0].health == HEALTHY
    assert caller.call(Ask.TAKE, kind=BLOCK, size=1).result == Result.OK


@pytest.mark.parametrize("xid", [79, 119])
def test_an_xid_that_costs_the_card_loses_it(node: SimulatedNode, caller: Caller, xid: int) -> None:
    node.control(f"xid 0 {xid}")
    assert (caller.node().card[0].health, _fault(caller)) == (LOST, UNAVAILABLE)


@pytest.mark.slow
def test_an_xid_of_one_process_leaves_the_others_alone(node: SimulatedNode, caller: Caller) -> None:
    with User(node.root) as other:
        row = other.ask(Ask.ATTACH).row
        node.control(f"xid 0 31 {other.pid}")
        faults = caller.node().card[0].fault
        assert (faults[0], faults[row]) == (0, ILLEGAL_ADDRESS)
        other.kill()
    until(lambda: used(node) == 64 << 20)
    with User(node.root) as after:
        assert after.ask(Ask.ATTACH).row == row
        assert caller.node().card[0].fault[row] == 0, "who comes after is not hit"


def test_a_lost_card_takes_nothing_more_and_gives_all_back(node: SimulatedNode, caller: Caller) -> None:
    piece = caller.call(Ask.TAKE, kind=BLOCK, size=5).id
    token = caller.call(Ask.SHARE, id=piece).token
    node.control("lose 0")
    assert _told(caller) == [(XID, FELL_OFF, 0)]
    assert _fault(caller) == UNAVAILABLE
    assert caller.call(Ask.TAKE, kind=BLOCK, size=1).result == Result.CARD_LOST
    assert caller.call(Ask.ATTACH).result == Result.CARD_LOST
    assert caller.call(Ask.OPEN, token=token).result == Result.CARD_LOST
    assert caller.call(Ask.GIVE, id=piece).result == Result.OK
    assert caller.call(Ask.DETACH).result == Result.OK
    assert used(node) == 0


def test_a_card_that_is_restored_serves_newcomers(node: SimulatedNode, caller: Caller) -> None:
    node.control("lose 0")
    node.control("restore 0")
    assert caller.node().card[0].health == HEALTHY
    assert _fault(caller) == UNAVAILABLE, "who was hit stays so"
    caller.call(Ask.DETACH)
    caller.call(Ask.ATTACH)
    assert _fault(caller) == 0


def test_only_the_card_that_is_named_is_lost(tmp_path: Path) -> None:
    with small_node(tmp_path, 2) as node, Caller(node.root) as caller:
        caller.call(Ask.ATTACH, card=0)
        node.control("lose 1")
        assert [caller.node().card[n].health for n in range(2)] == [HEALTHY, LOST]
        assert _fault(caller) == 0


def test_with_a_card_all_its_instances_are_lost(tmp_path: Path) -> None:
    with simulated_node(tmp_path, cards=(card("h100", mig=("1g.10gb", "3g.40gb")), "h100")) as node:
        node.control("lose 0")
        with Caller(node.root) as caller:
            assert [caller.node().card[n].health for n in range(4)] == [LOST, LOST, LOST, HEALTHY]


def test_so_many_takes_fail_and_then_no_more(node: SimulatedNode, caller: Caller) -> None:
    node.control("fail 0 2")
    results = [caller.call(Ask.TAKE, kind=BLOCK, size=1).result for _ in range(3)]
    assert results == [Result.MADE_TO_FAIL, Result.MADE_TO_FAIL, Result.OK]
    assert used(node) == (64 << 20) + 1


def test_memory_errors_are_counted_and_told(node: SimulatedNode, caller: Caller) -> None:
    node.control("ecc 0 corrected 3")
    node.control("ecc 0 uncorrected 2")
    about = caller.node().card[0]
    assert (about.ecc_corrected, about.ecc_uncorrected) == (3, 2)
    assert _told(caller) == [(SINGLE_BIT, 0, 0), (DOUBLE_BIT, 0, 0)]


def test_a_card_without_ecc_has_no_memory_errors(tmp_path: Path) -> None:
    with (
        simulated_node(tmp_path, cards=(card("t4", ecc=False),)) as node,
        pytest.raises(ControlRefused, match="ecc: card 0 has no ECC"),
    ):
        node.control("ecc 0 corrected 1")


def test_a_reload_takes_everything_from_everybody_and_begins_anew(node: SimulatedNode, caller: Caller) -> None:
    caller.call(Ask.TAKE, kind=BLOCK, size=5)
    before = caller.node().boot
    node.control("reload")
    assert caller.node().state == GONE
    with pytest.raises((ConnectionError, BrokenPipeError)):
        caller.call(Ask.USED)
    with Caller(node.root) as after:
        assert after.node().state == RUNNING
        assert after.node().boot != before
        assert used(node) == status(node).peak_bytes == 0


def test_a_reload_reads_what_the_node_is_now(node: SimulatedNode) -> None:
    conf = node.root / "etc/simgpu/node.conf"
    whole = conf.read_text()
    conf.write_text(whole.replace("memory = 1000 MiB", "memory = 500 MiB"))
    node.control("reload")
    assert status(node).total_bytes == 400 << 20
    conf.write_text(whole + "colour = green\n")
    with pytest.raises(ControlRefused, match=r"reload: node.conf:\d+: colour: no such key of a card"):
        node.control("reload")
    assert status(node).total_bytes == 400 << 20, "a mistake changes nothing"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("dance", "dance: no such command"),
        ("lose", "lose: say lose CARD"),
        ("lose 1", "lose: `1` is no number up to 0"),
        ("lose -1", "lose: `-1` is no number up to 0"),
        ("lose 0 0", "lose: say lose CARD"),
        ("xid 0 99999999999", "xid: `99999999999` is no number up to 4294967295"),
        ("xid 0 31 1", "xid: process 1 has no context on card 0"),
        ("ecc 0 maybe 1", "ecc: `maybe` is neither corrected nor uncorrected"),
        ("nvml", "nvml: say nvml hang|resume|delay MILLISECONDS|answer NUMBER"),
        ("nvml delay", "nvml: say hang, resume, delay MILLISECONDS or answer NUMBER"),
        ("nvml delay long", "nvml: `long` is no number up to 4294967295"),
        ("peaks", "peaks: say peaks reset"),
        ("peaks forget", "peaks: say reset"),
        ("a b c d e f g", "a: no such command"),
        (" ", "an empty command"),
        ("x" * 300, "an empty command"),
    ],
)
def test_a_command_that_means_nothing_is_refused_in_a_line(node: SimulatedNode, command: str, said: str) -> None:
    with pytest.raises(ControlRefused) as refused:
        node.control(command)
    assert str(refused.value) == said
