"""Simgpud's samples of a card's use."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.users import until
from simgpu.daemon.wire import Ask, Caller

_ROW_AT, _ROW_BYTES = 64, 64
"""Offset and size of the rows' published words in a timeline."""
_A_YEAR = 365 * 86_400 * 10**9


def _compute(caller: Caller, row: int, until_ns: int) -> None:
    """Publish work of this row up to a local time."""
    struct.pack_into("<Q", caller.timelines, _ROW_AT + row * _ROW_BYTES, until_ns)


def test_a_card_in_use_is_sampled_as_busy_and_an_idle_one_as_idle(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        row = caller.call(Ask.ATTACH).row
        until(lambda: caller.node().card[0].samples > 0)
        assert caller.node().card[0].sample[0].busy_milli == 0
        _compute(caller, row, _A_YEAR)
        until(lambda: _latest(caller) == (1000, 1000))
        assert caller.node().card[0].busy_ns > 0


def _latest(caller: Caller) -> tuple[int, int]:
    """Latest samples of the card and of the first row."""
    card = caller.node().card[0]
    sample = card.sample[(card.samples - 1) % 64]
    return sample.busy_milli, sample.row_busy_milli[0]


def test_the_work_of_a_process_that_failed_is_dropped_even_if_it_goes_on_publishing(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        row = caller.call(Ask.ATTACH).row
        _compute(caller, row, _A_YEAR)
        node.control("xid 0 31")
        _compute(caller, row, _A_YEAR)
        until(lambda: struct.unpack_from("<Q", caller.timelines, _ROW_AT + row * _ROW_BYTES)[0] < _A_YEAR)


def test_what_ran_until_its_process_ended_did_run(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        row = caller.call(Ask.ATTACH).row
        _compute(caller, row, _A_YEAR)
        begun = time.monotonic_ns()
        until(lambda: caller.node().card[0].busy_ns > 0)
        ran = time.monotonic_ns() - begun
        caller.call(Ask.DETACH)
        until(lambda: caller.node().card[0].busy_ns >= ran)


def test_a_reload_forgets_how_cards_were_used(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        row = caller.call(Ask.ATTACH).row
        _compute(caller, row, _A_YEAR)
        until(lambda: caller.node().card[0].busy_ns > 0)
        node.control("reload")
    with Caller(node.root) as caller:
        until(lambda: caller.node().card[0].samples > 1)
        assert caller.node().card[0].busy_ns == 0


def test_a_process_is_told_only_its_own_time_in_a_row_that_others_had(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        row = caller.call(Ask.ATTACH).row
        _compute(caller, row, _A_YEAR)
        until(lambda: _busy(caller) > 0)
        caller.call(Ask.DETACH)
        assert caller.call(Ask.ATTACH).row == row
        assert _busy(caller) == 0


def _busy(caller: Caller) -> int:
    return caller.call(Ask.PROCESSES).processes[0][3]


def test_nothing_ticks_while_nobody_is_there(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        until(lambda: _ticks(node))
        caller.hang_up()
        until(lambda: not _ticks(node))
    with Caller(node.root):
        until(lambda: _ticks(node))


def _ticks(node: SimulatedNode) -> bool:
    """Whether simgpud's timer is armed."""
    (timer,) = [info for info in _descriptors(node.pid) if "it_interval" in info]
    return "it_interval: (0, 0)" not in timer


def _descriptors(pid: int) -> Iterator[str]:
    """The kernel's facts about each descriptor.

    One that is closed meanwhile, such as that of a client that hung up, is left out.
    """
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield info.read_text()
