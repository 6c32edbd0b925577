"""The whole way with the real plugin host: the template's boards, plugins that crash, hang or eat memory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from partage_crishim.verdicts import Ending, Pass, Refuse, Rewrite
from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.vocabulary.keys import CONTAINER
from unit.crishim.rules.allocations import NODE, allocation, inventory, signed
from unit.crishim.rules.requests import Create, Seen
from unit.crishim.rules.stage import Crishim, Stage

pytestmark = pytest.mark.slow


TEMPLATE = {"fpga": "partage_fpga_template.node:FpgaNode"}
OBEDIENT = {"obedient": "support.host_plugins:Obedient"}


@pytest.fixture(autouse=True)
def _child_finds_the_tests_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def told(
    root: Path, paths: dict[str, str], story: Callable[[Stage, Crishim], Awaitable[None]], **settings: Any
) -> None:
    async def whole() -> None:
        host = PluginHost(HostSettings(node=NODE, root=str(root), paths=paths, **settings))
        stage = Stage(root=root, host=host)
        try:
            await story(stage, stage.crishim())
        finally:
            await host.stop()

    asyncio.run(whole())


def granted(container: str = "main", **kinds: object) -> Create:
    return Create(container=container, annotations=signed(allocation() | {"containers": {container: kinds}}))


def test_the_templates_boards_reach_the_container_as_devices(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    os.mknod(tmp_path / "dev/fpga0", 0o20600, os.makedev(1, 3))

    async def story(stage: Stage, crishim: Crishim) -> None:
        stage.write_inventory(inventory(fpga={"boards": ["fpga0", "fpga1"]}))
        verdict = await crishim.judged(granted(fpga=[{"board": "fpga0"}]))
        assert isinstance(verdict, Rewrite)
        seen = Seen(verdict.message)
        assert seen.variable("FPGA_BOARDS") == b"fpga0"
        assert seen.devices == [(b"/dev/fpga0", f"{tmp_path}/dev/fpga0".encode())]
        assert json.loads(seen.annotations[CONTAINER.encode()])["grants"] == {"fpga": [{"board": "fpga0"}]}
        missing = await crishim.judged(granted(fpga=[{"board": "fpga7"}]))
        assert isinstance(missing, Refuse)
        assert missing.sentence == "FPGA board fpga7 is not on this node; was it taken out?"
        unplugged = await crishim.judged(granted(fpga=[{"board": "fpga1"}]))
        assert isinstance(unplugged, Refuse)
        assert "dev/fpga1, which is not on this node" in unplugged.sentence

    told(tmp_path, TEMPLATE, story)


def test_a_kind_without_a_plugin_is_refused_by_name(tmp_path: Path) -> None:
    async def story(_: Stage, crishim: Crishim) -> None:
        verdict = await crishim.judged(granted(npu=[{"core": 1}]))
        assert isinstance(verdict, Refuse)
        assert verdict.sentence == "partage: no plugin for npu is in force on this node; see the logs of crishim"

    told(tmp_path, TEMPLATE, story)


def test_odd_requests_do_not_cost_the_plugins_process(tmp_path: Path) -> None:
    """What the vocabulary cannot say must not meet the child as what it cannot read."""

    async def story(_: Stage, crishim: Crishim) -> None:
        create = granted(thing=[{"id": "t0"}])
        odd = Create(
            annotations=create.annotations,
            env=[(b"\xff\xfe", b"\xff"), ("", "x")],
            mounts=[("relative", "/x"), ("/image", ""), ("/data/" + "./" * 5000, "/y"), (b"/\xff", b"/\xfe")],
            devices=[("dev", "/dev/z"), ("/dev/x", "/dev/y")],
        )
        verdict = await crishim.judged(odd)
        assert isinstance(verdict, Rewrite), verdict
        assert Seen(verdict.message).variable("THINGS") == b"t0"

    told(tmp_path, OBEDIENT, story)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("refuse", "this one cannot have it"),
        ("raises", "plugin obedient: partage_adjust: raised ValueError; crishim's log has more"),
        ("hang", "plugin obedient: partage_adjust: took longer than 0.5 s and was killed"),
        ("segfault", "plugin obedient: partage_adjust: its process was killed by SIGSEGV"),
        ("eat", "plugin obedient: partage_adjust: raised MemoryError"),
    ],
)
def test_plugins_that_crash_hang_or_eat_memory_cost_their_container_alone(
    name: str, sentence: str, tmp_path: Path
) -> None:
    async def story(stage: Stage, crishim: Crishim) -> None:
        create = granted(name, thing=[{"id": "t0"}])
        refused, passed = await asyncio.gather(crishim.judged(create), crishim.judged(Create()))
        assert isinstance(refused, Refuse)
        assert refused.sentence.startswith(sentence)
        assert isinstance(passed, Pass)
        verdict = await crishim.judged(granted(thing=[{"id": "t0"}]))
        assert isinstance(verdict, Rewrite)
        verdict.ended(Ending.FAILED)
        await crishim.collector.once()
        assert len((stage.root / "removed").read_text().splitlines()) == 2

    told(tmp_path, OBEDIENT, story, call_deadline_s=0.5, memory_bytes=200 * 1024 * 1024, pauses_s=(0,))
