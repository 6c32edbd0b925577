"""`partage nodes --pods`: each card's holders and amounts, as the scheduler counts them."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from partage_cli.nodes.holders import HeldCard, HeldCards, HoldingPod, as_table
from partage_cli.tables import as_json, as_yaml
from partage_plugins.api import CardId, NodeName
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from support.fake_api import FakeApi
from support.kube import until
from support.scheduler_stage import add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

pytestmark = pytest.mark.slow  # most start processes
CARD = HeldCard(
    node=NodeName("n1"),
    card=CardId("GPU-1"),
    index=0,
    model="T4",
    pool="shared",
    holders=(HoldingPod(pod="team/a", share_milli=600, memory_bytes=8 << 30),),
    share_left_milli=400,
    memory_left_bytes=8 << 30,
)


def asked(root: Path, *words: str, forged: bool = False) -> subprocess.CompletedProcess[str]:
    """Lists a node with two cards, after a scheduler placed two pods on one of them."""

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            add_node(api, "n1")
            for name, milli in (("a", 500), ("b", 300)):
                add_pod(api, name, milli)
            async with scheduler(api, settings_below(root)):
                await until(lambda: not unbound(api))
            if forged:
                stolen = api.objects.get(f"{PODS}/a")["metadata"]["annotations"]
                own = {"annotations": {key: stolen[key] for key in (ALLOCATION, SIGNATURE)}}
                api.objects.patch(f"{PODS}/b", {"metadata": own})
            argv = ("nodes", "--pods", "--kubeconfig", str(kubeconfig(root, api.url)), *words)
            return await asyncio.to_thread(partage, root, *argv)

    return asyncio.run(whole())


def test_each_card_has_its_holders_and_what_is_left(tmp_path: Path) -> None:
    done = asked(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = [line.split("   ") for line in done.stdout.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [cell.strip() for cell in header if cell.strip()] == ["NODE", "CARD", "MODEL", "POD", "SHARE", "MEMORY"]
    assert sorted(row[3:5] for row in cells) == [
        ["(left)", "200"],
        ["(unused)", "1000"],
        ["team/a", "500"],
        ["team/b", "300"],
    ]


def test_programs_get_the_same(tmp_path: Path) -> None:
    told = json.loads(asked(tmp_path, "-o", "json", "--node", "n1").stdout)
    assert sorted(len(each["holders"]) for each in told["cards"]) == [0, 2]
    assert sorted(each["share_left_milli"] for each in told["cards"]) == [200, 1000]
    assert told["notes"] == []
    found = HeldCards(cards=(CARD,))
    assert msgspec.yaml.decode(as_yaml(found)) == json.loads(as_json(found))


def test_what_somebody_wrote_on_a_pod_does_not_count(tmp_path: Path) -> None:
    """A pod with another pod's allocation counts with its request on every card, as in the scheduler."""
    told = json.loads(asked(tmp_path, "-o", "json", forged=True).stdout)
    held = [(each["pod"], each["share_milli"]) for card in told["cards"] for each in card["holders"]]
    assert sorted(held) == [("team/a", 500), ("team/b", 300), ("team/b", 300)]


def test_a_node_that_is_not_there_is_said_so_and_a_node_alone_has_another_command(tmp_path: Path) -> None:
    done = asked(tmp_path, "--node", "n99")
    assert (done.returncode, done.stderr) == (
        1,
        "partage: there is no node n99; `kubectl get nodes` has their names [PTG201]\n",
    )
    done = partage(tmp_path, "nodes", "--pods", "--local")
    assert (done.returncode, "partage top" in done.stderr) == (2, True)


def test_a_card_that_others_hand_out_promises_nothing() -> None:
    kubelets = replace(CARD, pool="kubelet", holders=())
    (row,) = as_table(HeldCards(cards=(kubelets,))).splitlines()[1:]
    assert row.split() == ["n1", "0", "GPU-1", "T4", "(kubelet", "hands", "it", "out)", "-", "-"]
