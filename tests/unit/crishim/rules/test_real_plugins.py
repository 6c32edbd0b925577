"""End to end with the real plugin host: the template's boards, plugins that crash, hang or use too much memory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from partage_crishim.decisions import Ending, Pass, Refuse, Rewrite
from partage_plugins.api.keys import CONTAINER
from partage_plugins.host import HostSettings, PluginHost
from unit.crishim.rules.allocations import NODE, allocation, inventory, signed
from unit.crishim.rules.requests import Create, Seen
from unit.crishim.rules.stage import Crishim, Stage

pytestmark = pytest.mark.slow


TEMPLATE = {"fpga": "partage_fpga_template.node:FpgaNode"}
OBEDIENT = {"obedient": "support.host_plugins:Obedient"}


@pytest.fixture(autouse=True)
def _child_finds_the_tests_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


@asynccontextmanager
async def a_node(root: Path, paths: dict[str, str], **settings: Any) -> AsyncGenerator[Stage]:
    host = PluginHost(HostSettings(node=NODE, root=str(root), paths=paths, **settings))
    try:
        yield Stage(root=root, host=host)
    finally:
        await host.stop()


async def refusal(crishim: Crishim, create: Create) -> str:
    decision = await crishim.decided(create)
    assert isinstance(decision, Refuse)
    return decision.sentence


def granted(container: str = "main", **kinds: object) -> Create:
    return Create(container=container, annotations=signed(allocation() | {"containers": {container: kinds}}))


async def test_the_templates_boards_reach_the_container_as_devices(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    os.mknod(tmp_path / "dev/fpga0", 0o20600, os.makedev(1, 3))
    async with a_node(tmp_path, TEMPLATE) as stage:
        crishim = stage.crishim()
        stage.write_inventory(inventory(fpga={"boards": ["fpga0", "fpga1"]}))
        decision = await crishim.decided(granted(fpga=[{"board": "fpga0"}]))
        assert isinstance(decision, Rewrite)
        seen = Seen(decision.message)
        assert seen.variable("FPGA_BOARDS") == b"fpga0"
        assert seen.devices == [(b"/dev/fpga0", f"{tmp_path}/dev/fpga0".encode())]
        assert json.loads(seen.annotations[CONTAINER.encode()])["grants"] == {"fpga": [{"board": "fpga0"}]}
        missing = await refusal(crishim, granted(fpga=[{"board": "fpga7"}]))
        assert missing == "FPGA board fpga7 is not on this node; was it taken out?"
        unplugged = await refusal(crishim, granted(fpga=[{"board": "fpga1"}]))
        assert "dev/fpga1, which is not on this node" in unplugged
        unknown = await refusal(crishim, granted(npu=[{"core": 1}]))
        assert unknown == "partage: no plugin for npu is in force on this node; see the logs of crishim"


async def test_odd_requests_do_not_cost_the_plugins_process(tmp_path: Path) -> None:
    """Values that the API can't represent must not reach the child in a form that it can't decode."""
    odd = Create(
        annotations=granted(thing=[{"id": "t0"}]).annotations,
        env=[(b"\xff\xfe", b"\xff"), ("", "x")],
        mounts=[("relative", "/x"), ("/image", ""), ("/data/" + "./" * 5000, "/y"), (b"/\xff", b"/\xfe")],
        devices=[("dev", "/dev/z"), ("/dev/x", "/dev/y")],
    )
    async with a_node(tmp_path, OBEDIENT) as stage:
        decision = await stage.crishim().decided(odd)
        assert isinstance(decision, Rewrite), decision
        assert Seen(decision.message).variable("THINGS") == b"t0"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("refuse", "this one cannot have it"),
        ("raises", "plugin obedient: partage_adjust: raised ValueError; crishim's log has more"),
        ("hang", "plugin obedient: partage_adjust: took longer than 2 s and was killed"),
        ("segfault", "plugin obedient: partage_adjust: its process was killed by SIGSEGV"),
        ("eat", "plugin obedient: partage_adjust: raised MemoryError"),
    ],
)
async def test_plugins_that_crash_hang_or_eat_memory_cost_their_container_alone(
    name: str, sentence: str, tmp_path: Path
) -> None:
    deadline_s = 2 if name == "hang" else 60
    bounds: dict[str, Any] = {"call_deadline_s": deadline_s, "memory_bytes": 200 << 20, "pauses_s": (0,)}
    async with a_node(tmp_path, OBEDIENT, **bounds) as stage:
        crishim = stage.crishim()
        create = granted(name, thing=[{"id": "t0"}])
        refused, passed = await asyncio.gather(refusal(crishim, create), crishim.decided(Create()))
        assert refused.startswith(sentence)
        assert isinstance(passed, Pass)
        decision = await crishim.decided(granted(thing=[{"id": "t0"}]))
        assert isinstance(decision, Rewrite)
        decision.ended(Ending.FAILED)
        await crishim.collector.once()
        assert len((stage.root / "removed").read_text().splitlines()) == 2
