"""`partage audit` as people type it: a process, its output and its exit code."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.fake_api import FakeApi
from support.kube import until
from support.scheduler_stage import add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

pytestmark = pytest.mark.slow  # each test starts processes


def audited(folder: Path, change: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
    """After a real scheduler placed a pod, which somebody then changes."""

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            add_node(api, "n1")
            add_pod(api, "p", 500)
            async with scheduler(api, settings_below(folder)):
                await until(lambda: not unbound(api))
            api.objects.patch(f"{PODS}/p", change)
            argv = ("audit", "--kubeconfig", str(kubeconfig(folder, api.url)), *words)
            return await asyncio.to_thread(partage, folder, *argv)

    return asyncio.run(whole())


def test_what_somebody_changed_is_found_and_the_exit_code_says_so(tmp_path: Path) -> None:
    forged = {"metadata": {"annotations": {"alloc.partage.dev/signature": "forged"}}}
    done = audited(tmp_path, forged, "-o", "json")
    assert done.returncode == 3
    found = json.loads(done.stdout)
    assert found["status"] == "wrong"
    assert [each["check"] for each in found["findings"]] == ["signatures", "keys", "requests", "nodes", "cards"]
    (fault,) = [each for each in found["findings"] if each["status"] == "wrong"]
    assert (fault["check"], fault["found"].startswith("pod team/p: allocation: ")) == ("signatures", True)
