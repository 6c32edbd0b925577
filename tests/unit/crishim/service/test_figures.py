"""What crishim counts is what a scraper reads."""

from __future__ import annotations

import asyncio

import pytest

from partage_base.condition import MOST_GUARDED, Condition, decode_condition, encode_condition
from partage_base.cri import read_create
from partage_base.daemon.metrics import Metrics
from partage_crishim.admission import AuditEvent
from partage_crishim.audit_log import AuditLog
from partage_crishim.proxy.counters import Counters
from unit.crishim.rules.requests import Create


def page(counters: Counters) -> tuple[AuditLog, list[str]]:
    metrics = Metrics("crishim")
    figures = AuditLog(counters, metrics)
    figures.refused["NoRoom"] += 2
    figures.changed["guarded"] += 8
    figures.plugins.observe(0.003)
    return figures, metrics.page().decode().splitlines()


def test_every_figure_is_on_the_page() -> None:
    counters = Counters(connections=3, open_connections=2, turned_away=1, broken=4, from_client_bytes=5)
    counters.call("/runtime.v1.RuntimeService/Status")
    counters.held["passed"] += 7
    counters.judging.observe(0.0004)
    counters.judging.observe(99)
    _, lines = page(counters)
    for line in (
        "partage_crishim_connections_total 3.0",
        "partage_crishim_open_connections 2.0",
        "partage_crishim_turned_away_total 1.0",
        "partage_crishim_broken_total 4.0",
        'partage_crishim_carried_bytes_total{sender="client"} 5.0',
        'partage_crishim_calls_total{method="/runtime.v1.RuntimeService/Status"} 1.0',
        'partage_crishim_held_total{outcome="passed"} 7.0',
        'partage_crishim_refused_total{reason="NoRoom"} 2.0',
        'partage_crishim_changed_total{why="guarded"} 8.0',
        'partage_crishim_judging_seconds_bucket{le="0.001"} 1.0',
        'partage_crishim_judging_seconds_bucket{le="30.0"} 1.0',
        'partage_crishim_judging_seconds_bucket{le="+Inf"} 2.0',
        "partage_crishim_judging_seconds_count 2.0",
        'partage_crishim_plugin_seconds_bucket{le="0.005"} 1.0',
    ):
        assert line in lines, line


async def test_containers_that_asked_for_cards_in_vain_are_known_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("partage_crishim.audit_log.time.monotonic", lambda: now)
    figures = AuditLog(Counters(), Metrics("crishim"))

    async def change(pod: str, *, asked: bool = True) -> None:
        request = read_create(Create(namespace="team", pod=pod).bytes())
        figures.event(AuditEvent(what="guarded", request=request, asked=asked))
        for _ in range(3):
            await asyncio.sleep(0)

    for number in range(MOST_GUARDED + 2):
        await change(f"p{number}")
    await change("p3")
    await change("silent", asked=False)
    pods = [each.pod for each in figures.guarded()]
    assert (len(pods), pods[0], pods[-1]) == (MOST_GUARDED, "p2", "p3")
    await change("x" * 1000)
    assert decode_condition(encode_condition(Condition(guarded=figures.guarded()))) is not None
    now = 600.0
    assert figures.guarded() == ()


def test_method_names_that_clients_make_up_break_no_line_and_are_counted_together() -> None:
    counters = Counters()
    for number in range(100):
        counters.call(f'/x"}} 1\nforged_total {number}')
    assert (len(counters.calls), counters.calls["other"]) == (65, 36)
    _, lines = page(counters)
    assert not any(line.startswith("forged") for line in lines)
