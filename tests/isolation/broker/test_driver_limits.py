"""A broker on a node whose driver holds limits itself: it hears of each container, of changes, and people are told."""

from __future__ import annotations

import json
import subprocess

import pytest

from support.cgroups import control_group, entering
from support.cri_peer import runtime_with
from support.isolated import isolated, until
from support.simgpu import newer_driver

pytestmark = pytest.mark.slow
MIB = 1 << 20
ID = "ab" * 32
RUNTIME = "cri.sock"


def test_the_driver_holds_what_is_in_force_and_people_are_told() -> None:
    with (
        isolated(settings={"runtime": f"/{RUNTIME}", "on_violation": "report"}) as place,
        control_group(f"cri-containerd-{ID}.scope") as group,
        subprocess.Popen([*entering(group), "sleep", "1000"]) as first,
    ):
        newer_driver(place.node)
        container = place.prepare(1024 * MIB)
        annotation = json.dumps({"v": 1, "key": container.key, "gen": 1, "grants": {"gpu": []}})
        try:
            assert container.told().cards[0].driver_limit_bytes is None
            with runtime_with(place.root / RUNTIME, ID, first.pid, annotation):
                until(lambda: container.told().cards[0].driver_limit_bytes == 1024 * MIB)
                container.lower(512 * MIB)
                until(lambda: container.told().cards[0].driver_limit_bytes == 512 * MIB)
                container.lower(None)
                assert container.told().cards[0].driver_limit_bytes == 1024 * MIB, "before it may be lent"
        finally:
            first.kill()
