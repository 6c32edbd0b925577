"""`partage drain --dry-run`: which pods leave a node, and whether they all fit elsewhere together."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from partage_base.kube import ApiServer
from partage_cli.drain.eviction import NodePod
from partage_cli.drain.question import Drained, drained
from partage_cli.drain.shown import as_text, notes
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.errors import Refused
from support.fake_api import FakeApi
from support.kube import access_to, until
from support.objects import on_nodes, pod_body
from support.scheduler_stage import LEASES, OURS, add_node, scheduler, settings_below, unbound
from support.scheduling import PODS
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage


def a_pod(name: str, milli: int, node: str = "", **more: Any) -> dict[str, Any]:
    """A pod for a scheduler to place, on `node` if given."""
    if node:
        more["affinity"] = on_nodes(node)
    return pod_body(name, milli=milli, **more)


async def placed(api: FakeApi, root: Path, *pods: dict[str, Any]) -> None:
    for lead in api.objects.select(LEASES, {"fieldSelector": "metadata.name=partage-scheduler"}):
        api.objects.delete(f"{LEASES}/{lead['metadata']['name']}")  # else this scheduler waits for the old Lease
    for pod in pods:
        api.objects.create(PODS, pod)
    async with scheduler(api, settings_below(root)):
        await until(lambda: not unbound(api))


async def seen(api: FakeApi, root: Path, node: str = "n1") -> Drained:
    async with ApiServer(access_to(api.url), user_agent="test") as server:
        return await drained(server, node=node, namespace=OURS, root=root)


def fates(found: Drained) -> dict[str, tuple[str, str]]:
    return {each.pod: (each.state, each.goes_to) for each in found.pods}


async def test_two_that_leave_do_not_take_the_same_room(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    await placed(api, tmp_path, a_pod("a", 600), a_pod("b", 600))
    add_node(api, "n2")
    await placed(api, tmp_path, a_pod("x", 600, "n2"))
    found = await seen(api, tmp_path)
    assert sorted(fates(found).values()) == [("does not fit", ""), ("fits", "n2")]
    assert not found.all_fit
    (stays,) = (each for each in found.pods if each.state == "does not fit")
    assert "Insufficient GPU share" in stays.message
    assert "unschedulable" in stays.message, "the node that is drained is no way out"
    assert [(card.share_milli, card.card[:2]) for each in found.pods for card in each.cards] == [(600, "n1")] * 2


async def test_those_that_fit_together_all_fit_and_nothing_is_written(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    await placed(api, tmp_path, a_pod("a", 600), a_pod("b", 600))
    add_node(api, "n2")
    before = len(api.objects.history)
    found = await seen(api, tmp_path)
    assert fates(found) == {"team/a": ("fits", "n2"), "team/b": ("fits", "n2")}
    assert found.all_fit
    assert len(api.objects.history) == before


async def test_who_makes_a_pod_again_is_said_and_who_does_not_leave_stays(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    web = a_pod("web-7d9f-x", 300, owner=("ReplicaSet", "web-7d9f"), labels={"pod-template-hash": "7d9f"})
    agent = a_pod("agent", 300, owner=("DaemonSet", "agents"))
    await placed(api, tmp_path, web, agent, a_pod("bare", 300), a_pod("once", 300, owner=("Job", "once")))
    found = await seen(api, tmp_path)
    assert {each.pod: (each.owner, each.state) for each in found.pods} == {
        "team/agent": ("DaemonSet/agents", "stays"),
        "team/bare": ("", "does not fit"),
        "team/once": ("Job/once", "does not fit"),
        "team/web-7d9f-x": ("Deployment/web", "does not fit"),
    }
    assert list(notes(found)) == [
        "nothing makes these pods again, and `kubectl drain` evicts them only with --force: team/bare"
    ]
    assert "its DaemonSet ignores that a node is drained" in as_text(found)


async def test_a_gang_is_placed_as_a_whole_or_not_at_all(api: FakeApi, tmp_path: Path) -> None:
    gang = {"partage.dev/gang": "train", "partage.dev/gang-size": "2"}
    add_node(api, "n1")
    await placed(api, tmp_path, a_pod("a", 1000, annotations=gang), a_pod("b", 1000, annotations=gang))
    add_node(api, "n2")
    await placed(api, tmp_path, a_pod("x", 100, "n2"))
    found = await seen(api, tmp_path)
    assert [each.state for each in found.pods] == ["does not fit"] * 2
    assert any("gang train is bound all or none, and pod" in each.message for each in found.pods)


async def test_cards_of_claims_are_not_known_to_fit(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    add_node(api, "n2")
    await placed(api, tmp_path, a_pod("a", 300, "n1"))
    claim = {"name": "gpu", "resourceClaimTemplateName": "half"}
    api.objects.patch(f"{PODS}/a", {"spec": {"resourceClaims": [claim]}})
    found = await seen(api, tmp_path)
    assert [each.state for each in found.pods] == ["not known"]
    assert not found.all_fit


async def test_a_pod_that_is_being_deleted_leaves_its_room_to_nobody_here(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    await placed(api, tmp_path, a_pod("a", 300))
    api.objects.patch(f"{PODS}/a", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    found = await seen(api, tmp_path)
    assert [each.state for each in found.pods] == ["leaves already"]
    assert found.all_fit


async def test_a_node_that_is_not_there_is_said_so(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    with pytest.raises(Refused, match="there is no node n99"):
        await seen(api, tmp_path, "n99")
    assert as_text(await seen(api, tmp_path)) == "no pod holds a card of n1\n"


def test_a_follower_asks_in_the_same_words_as_the_pod_and_has_nothing_yet() -> None:
    """For bound pods the scheduler keeps only its own annotations; other systems' annotations may hold the request."""
    kept = {"sharedgpu/gpu_request": "0.5", "other/long": "x" * 4096}
    notes = {ALLOCATION: "{}", **kept}
    pod = a_pod("a", 300, "n2", uid="u1", annotations=notes, nodeName="n1", schedulerName="default-scheduler")
    follower = msgspec.convert(pod, NodePod).successor("ours")
    assert follower.metadata.annotations == kept
    assert (follower.node, follower.uid, follower.spec.scheduler_name) == ("", "u1/again", "ours")
    assert follower.spec.affinity == msgspec.convert(pod, NodePod).spec.affinity


@pytest.mark.slow  # it starts processes
def test_the_words_the_table_and_the_exit_codes(tmp_path: Path) -> None:
    def run(*words: str, room: bool) -> subprocess.CompletedProcess[str]:
        async def whole() -> subprocess.CompletedProcess[str]:
            async with FakeApi() as api:
                add_node(api, "n1")
                await placed(api, tmp_path, a_pod("a", 600, owner=("Job", "a")))
                if room:
                    add_node(api, "n2")
                argv = ("drain", *words, "--kubeconfig", str(kubeconfig(tmp_path, api.url)))
                return await asyncio.to_thread(partage, tmp_path, *argv)

        return asyncio.run(whole())

    done = run("n1", room=True)
    assert (done.returncode, "kubectl drain n1" in done.stderr) == (2, True)
    done = run("--dry-run", "n1", room=True)
    header, row = (line.split("   ") for line in done.stdout.splitlines())
    assert [cell.strip() for cell in header if cell.strip()] == ["POD", "OWNER", "CARD", "SHARE", "MEMORY", "THEN"]
    assert [cell.strip() for cell in row if cell.strip()][::5] == ["team/a", "fits on n2"]
    assert (done.returncode, done.stderr) == (0, "")
    done = run("--dry-run", "n1", "-o", "json", room=False)
    (told,) = json.loads(done.stdout)["pods"]
    assert (done.returncode, told["state"], told["owner"]) == (3, "does not fit", "Job/a")
