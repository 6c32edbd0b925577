"""A container's create and end: failures and crashes leave nothing behind, and all live containers are found again."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from partage_base.peers import Peer, peer_named
from partage_oci import agent as agent_module
from partage_oci.agent import Agent, AgentPolicy
from partage_oci.holds import DoesNotFit, Hold, Holds
from partage_oci.messages import Create, Delete, Go, Wait
from partage_oci.placement import Placement
from partage_oci.records import EngineRecords
from partage_plugins.api import GPU, Adjustment, Mount
from partage_plugins.api.engines import engine_key
from partage_plugins.api.keys import CONTAINER
from partage_plugins.api.places import ENGINES_FOLDER
from partage_plugins.errors import PartageError, PluginHung, Refused
from partage_plugins.framework.node import Adjusted
from support.fake_host import FakeHost
from unit.oci.test_holds import HOLD_S, IDS, NODE, inventory, registry

ONE, OTHER = IDS[:2]
SHARE = ("PARTAGE_SHARE=600",)
ADJUSTED = Adjusted(adjustment=Adjustment(env={"OURS": "1"}, mounts=(Mount(container_path="/p", host_path="/run/p"),)))


class Engine:
    """Bundles of containers, and the processes that create them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.processes: list[subprocess.Popen[bytes]] = []
        self.peers: list[Peer] = []

    def process(self) -> tuple[subprocess.Popen[bytes], Peer]:
        """Start a process that calls the agent."""
        process = subprocess.Popen(("sleep", "infinity"))
        self.processes.append(process)
        self.peers.append(peer_named(process.pid))
        return process, self.peers[-1]

    def bundle(self, id_: str, *env: str) -> Create:
        """A bundle as an engine makes it, with the engine's own folder of the container."""
        folder, bundle = self.folder(id_), self.root / "bundles" / id_
        folder.mkdir(parents=True, exist_ok=True)
        bundle.mkdir(parents=True, exist_ok=True)
        mount = {"destination": "/etc/hosts", "type": "bind", "source": str(folder / "hosts")}
        linux = {"namespaces": [{"type": "pid"}]}
        document = {"process": {"env": ["PATH=/bin", *env]}, "mounts": [mount], "linux": linux}
        (bundle / "config.json").write_text(json.dumps(document))
        return Create(id=id_, bundle=str(bundle), root=str(self.root / "runtime"), runtime="/usr/bin/runc")

    def folder(self, id_: str) -> Path:
        return self.root / "containers" / id_

    def config(self, id_: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / "bundles" / id_ / "config.json").read_bytes())
        return found

    def created(self, id_: str) -> None:
        """Add the container to the runtime's state."""
        (self.root / "runtime" / id_).mkdir(parents=True, exist_ok=True)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in self.processes:
            self.end(process)
        for peer in self.peers:
            os.close(peer.pidfd)


class Site:
    """Successive agents on one machine with one card."""

    def __init__(self, root: Path) -> None:
        self.engine, self.host, self.root = Engine(root), FakeHost(ADJUSTED), root
        self.agents: list[Agent] = []
        self.unknown = ""

    def begin(self, **policy: Any) -> None:
        self.placement = Placement(NODE, registry())
        self.placement.take_in(inventory(1))
        self.holds = Holds(self.placement, NODE, restart_hold_s=HOLD_S)
        self.agent = Agent(
            placement=self.placement,
            holds=self.holds,
            records=EngineRecords(self.root),
            plugins=self.host,
            refresh=lambda: self.unknown,
            policy=AgentPolicy(**policy),
        )
        self.agents.append(self.agent)
        self.agent.take_over()

    async def again(self) -> None:
        """Replace the agent, as after a kill."""
        await self.agent.close()
        self.begin()

    async def runs(self, id_: str, *env: str) -> Go:
        """Create a container that has entered its claim."""
        process, peer = self.engine.process()
        answer = await self.agent.create(self.engine.bundle(id_, *(env or SHARE)), peer)
        hold = self.holds.of(id_)
        assert hold is not None
        self.host.in_use.add(hold.record.key)
        self.engine.created(id_)
        self.engine.end(process)
        return answer

    async def stage(self, id_: str, wanted: str | None) -> None:
        """Wait for the stage; the test's deadline ends a wait that never succeeds."""
        while _stage(self.holds.of(id_)) != wanted:  # noqa: ASYNC110  of processes, which end when they do
            await asyncio.sleep(0.001)

    @property
    def records(self) -> list[str]:
        return sorted(each.stem for each in (self.root / ENGINES_FOLDER).iterdir())

    @property
    def given_milli(self) -> int:
        return self.placement.rooms()[0].given_milli

    async def close(self) -> None:
        for agent in self.agents:
            await agent.close()
        self.engine.close()


def _stage(hold: Hold | None) -> str | None:
    return None if hold is None else hold.stage


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path)
    made.begin()
    yield made
    await made.close()


async def test_a_container_with_a_share_gets_what_was_prepared_and_our_hook(site: Site) -> None:
    _, peer = site.engine.process()
    assert await site.agent.create(site.engine.bundle(ONE, *SHARE), peer) == Go()
    key, config = engine_key(ONE, 1), site.engine.config(ONE)
    assert config["process"]["env"] == ["PATH=/bin", "PARTAGE_SHARE=600", "OURS=1"]
    assert json.loads(config["annotations"][CONTAINER])["key"] == key
    assert config["hooks"]["createRuntime"][0]["args"] == [os.readlink(f"/proc/{peer.pid}/exe"), "hook", key]  # noqa: PTH115
    ((container, granted),) = site.host.asked
    assert (container.key, container.pod.uid, container.pod.namespace) == (key, ONE, "containers")
    assert granted.gen == 1
    record = EngineRecords(site.root).of(ONE)
    assert record is not None
    assert (record.key, record.pid, record.root) == (key, peer.pid, str(site.root / "runtime"))
    assert record.folder == str(site.engine.folder(ONE))


async def test_an_engine_that_names_no_root_means_the_runtimes_own(site: Site) -> None:
    _, peer = site.engine.process()
    await site.agent.create(replace(site.engine.bundle(ONE, *SHARE), root=""), peer)
    record = EngineRecords(site.root).of(ONE)
    assert record is not None
    assert record.root == "/run/runc"


async def test_one_without_our_words_goes_as_it_is(site: Site) -> None:
    _, peer = site.engine.process()
    question = site.engine.bundle(ONE, "PARTAGE_SHARE=")
    before = site.engine.config(ONE)
    assert await site.agent.create(question, peer) == Go()
    assert site.engine.config(ONE) == before
    assert (site.records, site.host.asked) == ([], [])


async def test_nvidias_runtime_runs_those_with_a_share_where_it_is_set(site: Site) -> None:
    site.begin(nvidia_runtime="/usr/bin/nvidia-container-runtime", hook="/opt/partage-oci")
    assert await site.runs(ONE) == Go(runtime="/usr/bin/nvidia-container-runtime")
    assert site.host.asked[0][0].runtime.program == "/usr/bin/nvidia-container-runtime"
    assert site.engine.config(ONE)["hooks"]["createRuntime"][0]["path"] == "/opt/partage-oci"


@pytest.mark.parametrize("fault", [Refused("partage: no broker answers"), PluginHung("gpu", "partage_adjust", "slow")])
async def test_nothing_is_left_of_a_create_that_plugins_refuse(site: Site, fault: PartageError) -> None:
    site.host.answer = fault
    _, peer = site.engine.process()
    question = site.engine.bundle(ONE, *SHARE)
    before = site.engine.config(ONE)
    with pytest.raises(type(fault)):
        await site.agent.create(question, peer)
    assert site.engine.config(ONE) == before
    assert (site.given_milli, site.records, site.host.prepared) == (0, [], set())


async def test_a_promise_that_nothing_enforces_is_refused(site: Site) -> None:
    site.host.answer = replace(ADJUSTED, unenforced={GPU.name: ("share",)})
    _, peer = site.engine.process()
    with pytest.raises(Refused, match="share of gpu"):
        await site.agent.create(site.engine.bundle(ONE, *SHARE), peer)
    assert (site.given_milli, site.records) == (0, [])


async def test_while_the_cards_are_not_known_none_is_given_away(site: Site) -> None:
    site.unknown = "run/partage/inventory.json: No such file; is partage-inventory running?"
    _, peer = site.engine.process()
    with pytest.raises(Refused, match="which cards there are is not known: run/partage"):
        await site.agent.create(site.engine.bundle(ONE, *SHARE), peer)
    assert site.records == []


async def test_one_whose_creator_dies_without_a_container_holds_nothing(site: Site) -> None:
    process, peer = site.engine.process()
    await site.agent.create(site.engine.bundle(ONE, *SHARE), peer)
    assert site.given_milli == 600
    site.engine.end(process)
    await site.stage(ONE, None)
    assert (site.given_milli, site.records, site.host.prepared) == (0, [], set())


async def test_a_container_holds_its_share_until_nothing_has_it_and_then_its_place(site: Site) -> None:
    await site.runs(ONE)
    await site.stage(ONE, "running")
    await site.agent.look()
    assert site.given_milli == 600
    site.host.in_use.clear()
    await site.agent.look()
    await site.stage(ONE, "kept")
    _, peer = site.engine.process()
    with pytest.raises(Refused, match=r"room is kept .* for container aaaaaaaaaaaa, in case it is started again"):
        await site.agent.create(site.engine.bundle(OTHER, *SHARE), peer)
    await site.runs(ONE)
    assert [each.record.n for each in site.holds] == [2]


async def test_one_that_its_engine_removed_makes_room_at_once(site: Site) -> None:
    await site.runs(ONE)
    site.host.in_use.clear()
    await site.stage(ONE, "kept")
    site.engine.folder(ONE).rmdir()
    await site.runs(OTHER)
    assert site.records == [OTHER]


async def test_one_that_ended_a_moment_ago_keeps_no_other_from_starting(site: Site) -> None:
    await site.runs(ONE)
    await site.stage(ONE, "running")
    await site.agent.look()  # the look that found it running may still be in progress
    site.host.in_use.clear()
    site.engine.folder(ONE).rmdir()
    await site.runs(OTHER)
    assert site.records == [OTHER]


async def test_creates_that_find_no_room_wait_for_no_other_of_them(site: Site) -> None:
    held = site.host.hold(ONE)
    peers = [site.engine.process()[1] for _ in range(3)]
    first = asyncio.create_task(site.agent.create(site.engine.bundle(ONE, *SHARE), peers[0]))
    await site.stage(ONE, "creating")
    others = (
        site.agent.create(site.engine.bundle(id_, *SHARE), peer) for id_, peer in zip(IDS[1:], peers[1:], strict=False)
    )
    refused = await asyncio.gather(*others, return_exceptions=True)
    assert [type(each) for each in refused] == [DoesNotFit, DoesNotFit]
    held.set()
    assert await first == Go()


async def test_a_delete_is_looked_at_once_its_process_has_ended_and_never_believed(site: Site) -> None:
    await site.runs(ONE)
    await site.stage(ONE, "running")
    await site.agent.look()  # the look that found it running may still be in progress
    site.host.in_use.clear()
    deletes, peer = site.engine.process()
    site.agent.delete(Delete(id=ONE), peer)
    site.agent.delete(Delete(id=OTHER), peer)
    await asyncio.sleep(0)
    assert [each.stage for each in site.holds] == ["running"]
    site.engine.folder(ONE).rmdir()
    site.engine.end(deletes)
    await site.stage(ONE, None)


async def test_a_delete_while_a_container_is_created_ends_nothing(site: Site) -> None:
    creates, peer = site.engine.process()
    await site.agent.create(site.engine.bundle(ONE, *SHARE), peer)
    deletes, other = site.engine.process()
    site.agent.delete(Delete(id=ONE), other)
    site.engine.end(deletes)
    await site.agent.look()
    assert (site.given_milli, len(site.host.prepared)) == (600, 1)
    site.engine.end(creates)
    await site.stage(ONE, None)


async def test_a_plugin_that_is_slow_with_one_container_holds_up_no_other(site: Site) -> None:
    held = site.host.hold(ONE)
    (_, slow), (_, peer) = site.engine.process(), site.engine.process()
    waiting = asyncio.create_task(site.agent.create(site.engine.bundle(ONE, "PARTAGE_SHARE=300"), slow))
    await site.stage(ONE, "creating")
    assert await site.agent.create(site.engine.bundle(OTHER, "PARTAGE_SHARE=300"), peer) == Go()
    assert not waiting.done()
    held.set()
    assert await waiting == Go()
    assert site.given_milli == 600


async def test_one_that_goes_while_it_is_answered_leaves_nothing(site: Site) -> None:
    site.host.hold(ONE)
    process, peer = site.engine.process()
    waiting = asyncio.create_task(site.agent.create(site.engine.bundle(ONE, *SHARE), peer))
    await site.stage(ONE, "creating")
    site.engine.end(process)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    await site.stage(ONE, None)
    assert (site.given_milli, site.records) == (0, [])


async def test_another_agent_counts_all_before_it_answers_the_first(site: Site) -> None:
    await site.runs(ONE)
    await site.stage(ONE, "running")
    await site.again()
    _, peer = site.engine.process()
    with pytest.raises(Refused, match="no card has a share of 600 milli left"):
        await site.agent.create(site.engine.bundle(OTHER, *SHARE), peer)
    site.host.in_use.clear()
    site.engine.folder(ONE).rmdir()
    await site.agent.look()
    assert (site.given_milli, site.records) == (0, [])


async def test_another_agent_lets_go_of_what_died_with_the_first(site: Site) -> None:
    process, peer = site.engine.process()
    await site.agent.create(site.engine.bundle(ONE, *SHARE), peer)
    await site.agent.close()
    site.engine.end(process)
    await site.again()
    assert site.given_milli == 600
    await site.agent.look()
    assert (site.given_milli, site.records, site.host.prepared) == (0, [], set())


@pytest.mark.parametrize("step", ["record", "config"])
async def test_whoever_asks_again_after_an_agent_died_gets_the_same_once(site: Site, step: str) -> None:
    """Killed after the record was written, or after the configuration was and before the answer."""
    _, peer = site.engine.process()
    question = site.engine.bundle(ONE, *SHARE)
    written = (site.root / "bundles" / ONE / "config.json").read_bytes()
    await site.agent.create(question, peer)
    if step == "record":
        (site.root / "bundles" / ONE / "config.json").write_bytes(written)
    await site.again()
    assert await site.agent.create(question, peer) == Go()
    assert (site.given_milli, [each.record.n for each in site.holds]) == (600, [1])
    assert len(site.engine.config(ONE)["hooks"]["createRuntime"]) == 1
    assert len({each.key for each, _ in site.host.asked}) == 1


async def test_a_last_run_that_still_has_its_cards_keeps_a_container_from_starting(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "_LAST_RUN_S", 0.0)
    await site.runs(ONE)
    await site.stage(ONE, "running")
    _, peer = site.engine.process()
    with pytest.raises(Refused, match="processes of the last run of container aaaaaaaaaaaa still have their cards"):
        await site.agent.create(site.engine.bundle(ONE, *SHARE), peer)
    assert (site.given_milli, [each.record.n for each in site.holds]) == (600, [1])


async def test_it_tells_who_holds_a_share_and_how_long_a_place_is_kept(site: Site) -> None:
    await site.runs(ONE)
    await site.stage(ONE, "running")
    (held,) = site.agent.tell().containers
    assert (held.id, held.stage, held.kept_s, held.grants[0].share_milli) == (ONE, "running", None, 600)
    site.host.in_use.clear()
    await site.agent.look()
    (held,) = site.agent.tell().containers
    assert held.stage == "kept"
    assert held.kept_s is not None
    assert 0 < held.kept_s <= HOLD_S


async def test_room_that_was_waited_for_is_there_for_the_container_and_for_no_other(site: Site) -> None:
    await site.agent.wait(Wait(env=SHARE), lambda _: None)
    _, peer = site.engine.process()
    with pytest.raises(Refused, match="no card has a share of 700 milli left"):
        await site.agent.create(site.engine.bundle(OTHER, "PARTAGE_SHARE=700"), peer)
    await site.runs(ONE)
    assert site.given_milli == 600


async def test_who_waits_gets_the_room_of_a_container_that_was_removed(site: Site) -> None:
    await site.runs(ONE)
    await site.stage(ONE, "running")
    said = list[str]()
    waiting = asyncio.create_task(site.agent.wait(Wait(env=SHARE), said.append))
    while not said:  # noqa: ASYNC110  it is said within this loop
        await asyncio.sleep(0)
    site.engine.folder(ONE).rmdir()
    site.host.in_use.clear()
    await site.agent.look()
    await waiting


async def test_nothing_is_waited_for_where_nothing_is_asked_for(site: Site) -> None:
    with pytest.raises(Refused, match="say PARTAGE_SHARE, PARTAGE_MEMORY or PARTAGE_CARDS"):
        await site.agent.wait(Wait(env=()), lambda _: None)


RUNTIME = """#!/bin/sh
[ "$1 $3" = "--root kill" ] && touch {killed}
"""


async def test_a_runtime_that_is_gone_keeps_no_other_share_held(site: Site) -> None:
    await site.runs(ONE, "PARTAGE_SHARE=300")
    process, peer = site.engine.process()
    await site.agent.create(replace(site.engine.bundle(OTHER, "PARTAGE_SHARE=300"), runtime="/gone/runc"), peer)
    site.host.in_use.add(engine_key(OTHER, 1))
    site.engine.created(OTHER)
    site.engine.end(process)
    await site.stage(OTHER, "running")
    for id_ in (ONE, OTHER):
        site.engine.folder(id_).rmdir()
    await site.agent.look()
    site.host.in_use.discard(engine_key(ONE, 1))
    for _ in range(2):
        await site.agent.look()
    assert site.given_milli == 300


async def test_what_its_engine_removed_without_ending_it_is_killed(site: Site) -> None:
    runtime, killed = site.root / "runc", site.root / "killed"
    runtime.write_text(RUNTIME.format(killed=killed))
    runtime.chmod(0o755)
    process, peer = site.engine.process()
    await site.agent.create(replace(site.engine.bundle(ONE, *SHARE), runtime=str(runtime)), peer)
    site.host.in_use.add(engine_key(ONE, 1))
    site.engine.created(ONE)
    site.engine.end(process)
    await site.stage(ONE, "running")
    for _ in range(3):
        await site.agent.look()
    assert not killed.exists(), "its engine has it"
    site.engine.folder(ONE).rmdir()
    away = site.engine.folder(ONE).parent.rename(site.root / "away")
    for _ in range(3):
        await site.agent.look()
    assert not killed.exists(), "all folders of its engine are away"
    away.rename(site.engine.folder(ONE).parent)
    await site.agent.look()
    assert not killed.exists(), "its engine may be about to end it"
    await site.agent.look()
    assert killed.exists()
    assert site.given_milli == 600, "until the broker has seen it end"
    site.host.in_use.clear()
    await site.agent.look()
    assert site.given_milli == 0
