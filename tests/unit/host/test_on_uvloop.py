"""The host behaves the same on uvloop, which crishim uses."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from partage_plugins import Refused
from partage_plugins.api import NodeName
from partage_plugins.errors import PluginCrashed, PluginHung
from partage_plugins.host import HostSettings, PluginHost
from support.sides import container, granted_raw

pytestmark = pytest.mark.slow  # it starts processes

uvloop.new_event_loop().close()  # libuv creates its signal pipe once a process and keeps it: not a leak of a test


async def story(root: Path) -> None:
    settings = HostSettings(
        node=NodeName("n1"),
        root=str(root),
        paths={"obedient": "support.host_plugins:Obedient"},
        call_deadline_s=600.0,
    )
    host = PluginHost(settings)
    for name, outcome, deadline_s in (
        ("refuse", Refused, 600),
        ("segfault", PluginCrashed, 600),
        ("hang", PluginHung, 1),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host, "_settings", replace(settings, call_deadline_s=deadline_s))
            with pytest.raises(outcome):
                await host.adjust(container(name), granted_raw("t0"))
        adjusted = await host.adjust(container(), granted_raw("t0", "t1"))
        assert adjusted.adjustment.env["THINGS"] == "t0,t1"
    answers = await asyncio.gather(*(host.adjust(container(), granted_raw(f"t{each}")) for each in range(20)))
    assert [answer.adjustment.env["THINGS"] for answer in answers] == [f"t{each}" for each in range(20)]
    await host.stop()
    assert (root / "stopped").exists()


def test_refusals_crashes_hangs_and_many_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story(tmp_path))
