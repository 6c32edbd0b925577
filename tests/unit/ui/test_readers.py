"""Facts of a cluster and a machine, read once for all viewers with few requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import msgspec
import pytest

from partage_plugins.api.keys import INVENTORY
from partage_ui.asks import EACH_S, Asks
from partage_ui.board import Board
from partage_ui.cluster import nothing_known
from partage_ui.facts import Facts
from partage_ui.machine import MachineReader, OnceDoor
from partage_ui.settings import UiSettings
from rig.patience import patience_s
from support import broker, kubeconfigs
from support.fake_prometheus import fake_prometheus
from support.kube import beside, until
from support.objects import pod_body
from support.ui_stage import NODES, UiApi, a_card, a_grant, held, serving, told_of
from unit.cli.program import PARTAGE, environment


async def test_a_node_that_changes_goes_or_can_not_be_read_is_so_on_the_page() -> None:
    async with UiApi() as api:
        api.add_node("n1", a_card(0))
        api.add_node("n2", a_card(0, node="n2"), beats=False)
        async with serving(api, asks=False) as site:
            board = site.board
            await until(lambda: not board.facts.troubles)
            assert [node.why for node in board.facts.nodes.nodes] == ["", "its advertiser has no heartbeat"]
            api.objects.patch(f"{NODES}/n1", {"metadata": {"annotations": {INVENTORY: "{"}}})
            await until(lambda: "n1" in board.facts.nodes.faults)
            api.objects.delete(f"{NODES}/n2")
            await until(lambda: not board.facts.nodes.nodes)


def test_brokers_are_asked_a_few_at_a_time_the_longest_unasked_first() -> None:
    asks, nodes = Asks(), [f"n{number:04}" for number in range(35)]
    asked = [asks.due(nodes, float(second), every_s=10) for second in range(14)]
    assert [len(each) for each in asked] == [EACH_S] * 3 + [5] + [0] * 6 + [EACH_S] * 3 + [5]
    assert sorted(node for each in asked[:4] for node in each) == nodes
    assert asked[10:] == asked[:4]
    assert asks.due(nodes[:1], 14.0, every_s=10) == []


async def test_a_broker_that_does_not_answer_is_named_and_hides_no_other() -> None:
    async with UiApi() as api:
        card = a_card(0)
        grant = a_grant(card)
        api.add_node("n1", card)
        api.add_node("n2", a_card(0, node="n2"))
        api.tells["n1"] = told_of((card,), broker.container(broker.pod(), held(grant)))
        async with serving(api) as site:
            await until(lambda: len(site.board.facts.told) == 2)
            told = site.board.facts.told
            assert [each.title for each in told["n1"].workloads] == ["team-a/train-0"]
            assert told["n2"].why


async def test_pods_of_others_are_not_kept() -> None:
    async with UiApi() as api:
        api.add_waiting("team", "ours")
        for number in range(50):
            api.objects.create(
                "/api/v1/namespaces/other/pods", pod_body(f"p{number}", namespace="other", schedulerName="x")
            )
        async with serving(api, asks=False) as site:
            await until(lambda: not site.board.facts.troubles)
            assert [pod.title for pod in site.board.facts.pods] == ["team/ours"]


async def test_a_week_is_what_prometheus_has_of_it() -> None:
    async with UiApi() as api, fake_prometheus({"": 30.0}) as (url, _), serving(api, prometheus=url) as site:
        await until(lambda: site.board.facts.week is not None)
        week = site.board.facts.week
        assert week is not None
        assert list(week.held) == ["team-a"]
        assert week.held["team-a"].milli_hours > 0


def test_an_address_of_a_prometheus_that_is_none_is_refused() -> None:
    for wrong in ("localhost:9090", "http://user:word@localhost", "http://localhost:99999", "http://localhost:port"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"prometheus": wrong}, UiSettings)
    assert msgspec.convert({"prometheus": "http://[::1]:9090/x"}, UiSettings).prometheus


async def test_a_prometheus_that_is_away_is_named() -> None:
    async with UiApi() as api, serving(api, prometheus="http://127.0.0.1:1") as site:
        await until(lambda: site.board.facts.week is not None)
        assert site.board.facts.week is not None
        assert "Prometheus at 127.0.0.1:1: " in site.board.facts.week.notes[0]


async def test_a_word_opens_the_page_of_a_machine_once() -> None:
    door = OnceDoor()
    assert await door.enter(door.token[:-1]) is None
    assert await door.enter(door.token) is not None
    assert await door.enter(door.token) is None


async def test_a_machine_shows_what_its_broker_tells_and_says_when_that_is_away(tmp_path: Path) -> None:
    told = broker.told(broker.container(broker.pod(), broker.held()))
    board = Board(Facts(at=nothing_known().at, is_cluster=False))
    with broker.FakeBroker(tmp_path, told):
        async with beside(MachineReader(tmp_path, board).run()):
            await until(lambda: board.facts.workloads)
    assert [each.title for each in board.facts.workloads] == ["team-a/train-0"]
    async with beside(MachineReader(tmp_path, board).run()):
        await until(lambda: board.facts.troubles)


@pytest.mark.slow  # it starts a process
async def test_the_command_prints_an_address_that_works_once(tmp_path: Path) -> None:
    told = broker.told(broker.container(broker.pod(), broker.held()))
    with broker.FakeBroker(tmp_path, told):
        process = await asyncio.create_subprocess_exec(
            *PARTAGE, "--root", tmp_path, "ui", "--port", "0", env=environment(), stdout=subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            address = (await process.stdout.readline()).decode().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/login\?token=[\w-]{32}", address)
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                async with session.get(address) as answer:
                    assert (answer.status, answer.url.path) == (200, "/waiting")
                async with session.get(answer.url.with_path("/workloads")) as answer:
                    assert "train-0" in await answer.text()
            async with aiohttp.ClientSession() as session, session.get(address) as answer:
                assert answer.status == 401
        finally:
            process.send_signal(signal.SIGINT)
            status = await process.wait()
            process._transport.close()  # type: ignore[attr-defined]
        assert status == 0


@pytest.mark.slow  # it starts a process
async def test_the_daemon_serves_the_page_of_a_cluster_until_it_is_told_to_stop(tmp_path: Path) -> None:
    async with UiApi() as api:
        api.people.add("of-ada", "ada", "*")
        api.add_waiting("team-a", "train-0")
        config = kubeconfigs.write(tmp_path / "kubeconfig", server=api.url)
        words = ("--root", tmp_path, "--kubeconfig", config, "--listen", "127.0.0.1:0")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "partage_ui", *words), env=environment(), stderr=subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            port = 0
            while not port:
                port = json.loads(await process.stderr.readline()).get("port", 0)
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                async with session.post(f"http://127.0.0.1:{port}/login", data={"token": "of-ada"}) as answer:
                    assert answer.status == 200
                async with session.get(f"http://127.0.0.1:{port}/live/waiting") as stream:
                    async for line in stream.content:
                        if b"train-0" in line:
                            break
                    process.terminate()
                    with contextlib.suppress(aiohttp.ClientError):
                        assert b"event: end" in await stream.content.read()
        finally:
            await ended(process)
        assert process.returncode == 0


async def ended(process: asyncio.subprocess.Process) -> None:
    """Sends a single signal: a second one would have another meaning."""
    try:
        async with asyncio.timeout(patience_s()):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.communicate()
