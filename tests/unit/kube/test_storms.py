"""A program that follows through a storm of faults knows in the end what there is."""

from __future__ import annotations

import asyncio
import random

import pytest

from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    Listed,
    Node,
    follow,
    node_path,
    nodes_path,
)
from partage_base.kube import lists as listing_module
from support.fake_api import FakeApi, Lists
from support.fake_faults import Storm
from support.kube import until


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "lists"), [*enumerate(Lists)])
async def test_who_follows_through_a_storm_knows_in_the_end_what_there_is(
    api: FakeApi, server: ApiServer, seed: int, lists: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "SILENT_S", 0.05)
    api.lists = lists
    api.weather = storm = Storm(seed, strength=0.3)
    known: dict[str, Node] = {}
    backoff = Backoff(first_s=0.01, most_s=0.02, random=lambda: 0.5)
    following = asyncio.create_task(_follow(server, known, backoff))
    chance = random.Random(seed)  # noqa: S311
    for _ in range(150):
        _change(api, chance)
        await asyncio.sleep(0.002)
    storm.strength = 0.0
    await until(lambda: {name: node.metadata.labels for name, node in known.items()} == _there(api))
    following.cancel()


def _change(api: FakeApi, chance: random.Random) -> None:
    path = node_path(f"n{chance.randrange(5)}")
    held = [each["metadata"]["name"] for each in api.objects.select(nodes_path(), {})]
    if path.rpartition("/")[2] not in held:
        api.objects.create(nodes_path(), {"metadata": {"name": path.rpartition("/")[2], "labels": {}}})
    elif chance.random() < 0.2:
        api.objects.delete(path)
    else:
        api.objects.patch(path, {"metadata": {"labels": {"x": str(chance.random())}}})


def _there(api: FakeApi) -> dict[str, object]:
    return {each["metadata"]["name"]: each["metadata"]["labels"] for each in api.objects.select(nodes_path(), {})}


async def _follow(server: ApiServer, known: dict[str, Node], backoff: Backoff) -> None:
    gone: dict[str, int] = {}
    async for seen in follow(server, nodes_path(), Node, backoff=backoff):
        match seen:
            case Listed(items):
                known.clear()
                known.update({item.metadata.name: item for item in items})
            case Changed(item, version):
                held = known.get(item.metadata.name)
                newest = max(int(held.metadata.resource_version) if held else 0, gone.get(item.metadata.uid, 0))
                if int(version) > newest:
                    known[item.metadata.name] = item
            case Deleted(item, version):
                gone[item.metadata.uid] = int(version)
                if (held := known.get(item.metadata.name)) and held.metadata.uid == item.metadata.uid:
                    del known[item.metadata.name]
            case _:
                pass
