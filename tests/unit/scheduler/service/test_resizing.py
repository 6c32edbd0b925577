"""A whole scheduler resizes pods on nodes, accounts for their new sizes, and signs them."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from partage_plugins.api import GPU
from partage_plugins.api.keys import ALLOCATION, GPU_MEMORY, GPU_MILLI, RESIZE, RESIZE_WAIT, RESIZED, RESIZED_PODS
from partage_plugins.codecs import decode_allocation
from partage_scheduler.placement import resized_pods, resizer
from support.fake_api import CutShort, Drop, FakeApi, Fault, Hang, Refuse
from support.kube import until
from support.scheduler_stage import LEASES, Truth, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS, stands

QUOTAS = "/api/v1/namespaces/team/resourcequotas"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (resizer, resized_pods):
        monkeypatch.setattr(module, "EVERY_S", 0.02)


def wish(api: FakeApi, name: str, milli: int, *, waits: bool = False) -> None:
    said = {"gpu-milli": milli}
    notes = {RESIZE: json.dumps({"main": said}), RESIZE_WAIT: "yes" if waits else None}
    api.objects.patch(f"{PODS}/{name}", {"metadata": {"annotations": notes}})


def has(api: FakeApi, name: str) -> tuple[int, int]:
    """The pod's gen, and its share of a card."""
    found = decode_allocation(stands(api, name).metadata.annotations[ALLOCATION], [GPU])
    return found.gen, sum(grant.share_milli for grants in found.of(GPU).values() for grant in grants)


def said(api: FakeApi, name: str) -> str:
    return next(
        (f"{each.reason} {each.message}" for each in stands(api, name).status.conditions if each.type == RESIZED), ""
    )


async def test_a_pod_grows_and_shrinks_by_its_wish_and_the_books_follow(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    add_pod(api, "p", 300)
    add_pod(api, "q", 900)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        wish(api, "p", 700)
        await until(lambda: has(api, "p") == (2, 700))
        add_pod(api, "r", 400)
        await until(
            lambda: any("Insufficient GPU share" in each.message for each in stands(api, "r").status.conditions)
        )
        wish(api, "p", 600)
        await until(lambda: not unbound(api))
        assert has(api, "p") == (3, 600)
        await until(lambda: "Granted" in said(api, "p"))
    Truth(api, tmp_path).check()


async def test_what_has_no_room_is_refused_in_words_and_by_wish_it_waits(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    for name in "pq":
        add_pod(api, name, 500)
        add_pod(api, f"{name}2", 500)
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: not unbound(api))
        wish(api, "p", 700)
        await until(lambda: said(api, "p").startswith('Refused {"main": {"gpu-milli": 700}}: no room beside'))
        assert said(api, "p").endswith("of node n1: Insufficient GPU share")
        wish(api, "q", 600, waits=True)
        await until(lambda: said(api, "q").startswith("Waits"))
        assert has(api, "p") == has(api, "q") == (1, 500)
        for name in ("p2", "q2"):
            api.objects.delete(f"{PODS}/{name}")
        await until(lambda: has(api, "q") == (2, 600))
        assert has(api, "p") == (1, 500), "it was refused, and did not wish again"
        assert not running.failures


def named(api: FakeApi, node: str) -> dict[str, int]:
    """The resized pods that the Lease of a node lists, each with its gen."""
    text = api.objects.get(f"{LEASES}/{node}")["metadata"].get("annotations", {}).get(RESIZED_PODS, "{}")
    return {each["name"]: each["gen"] for each in json.loads(text).values()}


async def test_the_lease_of_a_node_names_its_resized_pods_whoever_leads(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    for name in "pqr":
        add_pod(api, name, 300)
    async with scheduler(api, settings_below(tmp_path, elect=False)):
        await until(lambda: not unbound(api))
        assert named(api, "n1") == {}
        api.expect(Refuse(500), method="PATCH", under=LEASES, times=3)
        wish(api, "p", 400)
        await until(lambda: named(api, "n1") == {"p": 2})
        wish(api, "q", 200)
        wish(api, "p", 300)
        await until(lambda: named(api, "n1") == {"p": 3, "q": 2})
    api.objects.delete(f"{PODS}/p")
    api.objects.patch(f"{LEASES}/n1", {"metadata": {"annotations": {RESIZED_PODS: '{"x":{"name":"x","gen":2}}'}}})
    async with scheduler(api, settings_below(tmp_path, elect=False)):
        await until(lambda: named(api, "n1") == {"q": 2})
        api.objects.delete(f"{PODS}/q")
        await until(lambda: named(api, "n1") == {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "JSON"),
        ('{"main":{}}', "gpu-milli, gpu-memory, or both"),
        ('{"main":{"gpu-mili":7}}', "gpu-mili"),
        ('{"main":{"gpu-milli":1001}}', "which has 1000"),
        ('{"x":{"gpu-milli":7}}', "container x has no share"),
        ('{"main":{"gpu-memory":"0"}}', "no memory"),
        ('{"main":{"gpu-memory":"99Gi"}}', "no room"),
    ],
)
async def test_a_wish_that_can_not_be_is_refused_in_words(api: FakeApi, tmp_path: Path, text: str, why: str) -> None:
    add_node(api, "n1")
    add_pod(api, "p", 300)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        api.objects.patch(f"{PODS}/p", {"metadata": {"annotations": {RESIZE: text}}})
        await until(lambda: said(api, "p").startswith("Refused"))
        assert why in said(api, "p")
        assert has(api, "p") == (1, 300)


async def test_growth_stays_within_the_quota_and_new_pods_count_beside_it(api: FakeApi, tmp_path: Path) -> None:
    api.objects.create(
        QUOTAS,
        {"metadata": {"name": "cards", "namespace": "team"}, "spec": {"hard": {f"requests.{GPU_MILLI}": "1000"}}},
    )
    add_node(api, "n1")
    add_pod(api, "p", 300)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: not unbound(api))
        wish(api, "p", 999)
        await until(lambda: has(api, "p") == (2, 999))
        add_pod(api, "q", 2)
        await until(lambda: any("exceeded quota: cards" in each.message for each in stands(api, "q").status.conditions))
        wish(api, "p", 998)
        await until(lambda: not unbound(api))
        wish(api, "q", 3)
        await until(lambda: said(api, "q").startswith("Refused"))
        assert f"exceeded quota: cards, {GPU_MILLI}: 1001 with this one, limited: 1000" in said(api, "q")


@pytest.mark.parametrize(
    "fault",
    [
        Drop(after_success=True),
        CutShort(),
        Hang(after_success=True),
        Refuse(500, after_success=True),
        Drop(),
        Refuse(429),
        Refuse(503),
        Refuse(409, "Conflict"),
        Refuse(403, "Forbidden"),
    ],
    ids=repr,
)
async def test_whatever_is_answered_there_is_one_truth(api: FakeApi, tmp_path: Path, fault: Fault) -> None:
    add_node(api, "n1")
    add_pod(api, "p", 300)
    async with scheduler(api, settings_below(tmp_path), deadline_s=0.3):
        await until(lambda: not unbound(api))
        api.expect(fault, method="PATCH", under=f"{PODS}/p", times=1)
        wish(api, "p", 700)
        await until(lambda: has(api, "p")[1] == 700)
        add_pod(api, "q", 400)
        await until(lambda: not unbound(api))
        await until(lambda: "Granted" in said(api, "p"))
    Truth(api, tmp_path).check()
    assert has(api, "p") == (2, 700)


NAMES = [f"p{number}" for number in range(6)]


def gens(api: FakeApi) -> int:
    return sum(has(api, name)[0] for name in NAMES)


async def the_sizes_change(api: FakeApi, rng: random.Random, changes: int) -> None:
    for _ in range(changes):
        wish(api, rng.choice(NAMES), rng.randrange(50, 1000, 50), waits=rng.random() < 0.5)
        await asyncio.sleep(rng.random() * 0.03)


@pytest.mark.parametrize("seed", [1, 2, pytest.param(range(25), marks=pytest.mark.extended("many seeds of the same"))])
async def test_up_and_down_with_kills_no_card_is_ever_over(api: FakeApi, tmp_path: Path, seed: int | range) -> None:
    """Each scheduler is killed midway, and the next one continues from the pods' annotations."""
    rng = random.Random(repr(seed))  # noqa: S311  the same for the same seed
    add_node(api, "n1")
    for name in NAMES:
        add_pod(api, name, 200, limits={GPU_MEMORY: "1Gi"})
    for _ in range(3 if isinstance(seed, int) else len(seed)):
        async with scheduler(api, settings_below(tmp_path, elect=False), deadline_s=0.3) as running:
            await until(lambda: not unbound(api) and not running.parts.freshness.missing)
            before = gens(api)
            faults: list[Fault] = [Drop(after_success=True), Refuse(500), CutShort()]
            api.expect(rng.choice(faults), method="PATCH", times=2)
            await the_sizes_change(api, rng, 12)
            largest = max(NAMES, key=lambda name: has(api, name)[1])
            wish(api, largest, has(api, largest)[1] - 10)  # always fits
            await until(lambda: gens(api) > before)  # noqa: B023  it is over then
    Truth(api, tmp_path).check()
