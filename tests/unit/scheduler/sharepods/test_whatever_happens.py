"""For any actions of users and the scheduler and any outages, a pair is one card and each SharePod gets its one pod."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.scheduler.sharepods.world import NODES, World, a_share

NAMES = tuple("abcdef")
GPUIDS = ("abcde", "zxcvb")
POLICIES = ("Always", "OnFailure", "Never")
PHASES = ("Running", "Succeeded", "Failed")
Move = tuple[str, int, int]
MOVES = ("auto", "hand", "delete", "end", "remove pod", "bind", "work", "hear", "collect", "kill", "lose")
moves = st.lists(
    st.tuples(st.sampled_from((*MOVES, "bind", "work", "hear", "hand")), st.integers(0, 30), st.integers(0, 30)),
    max_size=80,
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(moves)
def test_a_pair_is_one_card_and_each_sharepod_has_one_pod(moves: Sequence[Move]) -> None:
    asyncio.run(_played(moves))


async def _played(moves: Sequence[Move]) -> None:
    world = World()
    for move in moves:
        await _moved(world, move)
        assert all(len(cards) == 1 for cards in world.pairs().values()), world.pairs()
    world.loses = ""
    for _ in range(len(NAMES) + 1):  # the first pod of a pair unblocks others
        world.collect()
        await world.settle()
        for name in sorted(world.pods):
            world.bind(name, 0)
    await world.settle()
    _require_right(world)


async def _moved(world: World, move: Move) -> None:  # noqa: C901  (a table)
    what, one, two = move
    name = NAMES[one % len(NAMES)]
    milli = 100 + 100 * (two % 10)
    match what:
        case "auto":
            world.apply(a_share(name, milli, policy=POLICIES[two % 3]))
        case "hand":
            world.apply(a_share(name, milli, gpuid=GPUIDS[two % 2], node=NODES[one % 2], policy=POLICIES[two % 3]))
        case "delete" if name in world.shares:
            world.delete(name)
        case "end" if world.card(name) and world.lives(name):
            world.end(name, PHASES[two % 3])
        case "remove pod" if name in world.pods:
            world.remove_pod(name)
        case "bind" if name in world.pods:
            world.bind(name, two)
        case "work":
            world.now += two
            await world.controller.work()
        case "hear":
            world.hear(two)
        case "collect":
            world.collect()
        case "kill":
            world.begin()
        case "lose":
            world.loses = ("call", "answer")[two % 2]
        case _:
            pass


def _require_right(world: World) -> None:
    assert all(len(cards) == 1 for cards in world.pairs().values()), world.pairs()
    for name, pod in world.pods.items():
        share = world.shares[name]
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["uid"] == share["metadata"]["uid"]
        assert share["status"]["PodStatus"] == pod["status"]
        assert share["status"]["PodObjectMeta"]["uid"] == pod["metadata"]["uid"]
        assert share["status"].get("BoundDeviceID", "") == world.card(name)
        if world.card(name) and pod["status"]["phase"] == "Pending":
            assert share["spec"]["nodeName"] == pod["spec"]["nodeName"]
    for name, share in world.shares.items():
        if name not in world.pods:
            assert _may_have_none(world, name), share


def _may_have_none(world: World, name: str) -> bool:
    """Whether it has ended, or waits for the first pod of its pair, which has no room."""
    status = world.shares[name].get("status", {})
    (condition,) = status["conditions"]
    last = status.get("PodStatus", {}).get("phase")
    policy = world.shares[name]["spec"]["restartPolicy"]
    ended = {"Always": (), "OnFailure": ("Succeeded",), "Never": ("Succeeded", "Failed")}[policy]
    return last in ended or condition["reason"] == "Waiting"
