"""`partage audit` from the command line: a process, its output and its exit code."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from partage_plugins.api.keys import GPU_MILLI
from support.fake_api import FakeApi
from support.kube import until
from support.scheduler_stage import add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

pytestmark = pytest.mark.slow  # each test starts processes


def audited(
    folder: Path, change: dict[str, Any], *words: str, limits: dict[str, str] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Audits a cluster in which a real scheduler with this environment placed a pod, which was then modified."""

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            add_node(api, "n1")
            add_pod(api, "p", limits=limits or {GPU_MILLI: "500"})
            with pytest.MonkeyPatch.context() as patch:
                for name, text in environment.items():
                    patch.setenv(name, text)
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
    assert [each["check"] for each in found["findings"]] == [
        "signatures",
        "keys",
        "requests",
        "nodes",
        "cards",
        "words",
    ]
    (fault,) = [each for each in found["findings"] if each["status"] == "wrong"]
    assert (fault["check"], fault["found"].startswith("pod team/p: allocation: ")) == ("signatures", True)


def test_what_pods_ask_for_is_read_as_the_scheduler_reads_it(tmp_path: Path) -> None:
    done = audited(tmp_path, {}, limits={"nvidia.com/gpu": "1"}, PARTAGE_NVIDIA_GPU="whole")
    assert (done.returncode, "1 pods on nodes have what they ask for" in done.stdout) == (0, True), done.stdout


def test_each_pod_is_judged_by_the_scheduler_that_it_names(tmp_path: Path) -> None:
    """Two of our schedulers in one cluster, one of which reads `nvidia.com/gpu`."""

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            add_node(api, "n1")
            for name, limits, reader in (
                ("partage-scheduler", {GPU_MILLI: "500"}, "kubelet"),
                ("whole-cards", {"nvidia.com/gpu": "1"}, "whole"),
            ):
                add_pod(api, f"of-{name}", limits=limits, schedulerName=name)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("PARTAGE_NVIDIA_GPU", reader)
                    async with scheduler(api, settings_below(tmp_path, scheduler_name=name)):
                        await until(lambda: not unbound(api))
            add_pod(api, "lost", schedulerName="other", nodeName="n1", annotations={"gpu-fraction": "0.5"})
            argv = ("audit", "--kubeconfig", str(kubeconfig(tmp_path, api.url)), "-o", "json")
            return await asyncio.to_thread(partage, tmp_path, *argv)

    done = asyncio.run(whole())
    told = [each for each in json.loads(done.stdout)["findings"] if each["status"] in {"wrong", "warning"}]
    assert {each["check"] for each in told} == {"requests", "words"}, done.stdout
    for each in told:
        assert "team/lost" in each["found"]
        assert "name partage-scheduler or whole-cards in schedulerName" in each["advice"]


def test_what_is_not_known_of_the_scheduler_is_a_finding_and_no_fault(tmp_path: Path) -> None:
    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            argv = ("audit", "--kubeconfig", str(kubeconfig(tmp_path, api.url)), "-o", "json")
            return await asyncio.to_thread(partage, tmp_path, *argv)

    done = asyncio.run(whole())
    found = {each["check"]: each for each in json.loads(done.stdout)["findings"]}
    assert done.returncode == 0
    assert found["settings"]["found"].startswith("no scheduler says in namespace partage-system how it decides")
    assert found["signatures"]["status"] == "ok", "without allocations it does not matter that there is no key"
