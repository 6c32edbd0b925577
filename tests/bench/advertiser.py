"""How soon an advertiser tells the truth after changes and troubles, what it costs at rest, and how a thousand fare.

One node of a rig with sixteen simulated cards tells of every kind of change and survives every kind of trouble; what
counts is when the annotation in the real API server is right. Then it is left alone. A crowd in one process, without
cards but each with its own node and token, starts at once, rests, changes at once, and loses its API server.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from bench.advertising.answers import answers
from bench.advertising.changes import CHANGES, latencies
from bench.advertising.crowd import Crowd, crowd
from bench.advertising.place import Node, node
from bench.advertising.recoveries import TROUBLES, recoveries_s
from bench.advertising.rest import rest
from bench.harness import Bench
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from rig.programs.steps import to_stderr

CHANGE_S: Final = 2
TROUBLE_S: Final = 15
RETURN_S: Final = 60
RESIDENT_MIB: Final = 120
LOAD: Final = 0.005
TURNED_AWAY: Final = 2
"""Answers 429 for each of a crowd that comes back at once: it needs five calls, and a storm would not end."""
_NS: Final = 1e9


class Plan(NamedTuple):
    rounds: int
    changes: int
    troubles: int
    trouble_s: float
    settled_s: float
    rest_s: float
    members: int
    crowd_rest_s: float
    outage_s: float


FULL: Final = Plan(3, len(CHANGES), len(TROUBLES), 15, 15, 600, 1000, 60, 60)
SMOKE: Final = Plan(1, 1, 1, 0, 0, 1, 5, 0.5, 0)
"""In it the crowd shares the node's API server, which stays."""


def measure_changes(bench: Bench, node: Node, plan: Plan) -> None:
    worst = 0.0
    for change in CHANGES[: plan.changes]:
        seen = latencies(node, change, plan.rounds)
        bench.samples(f"{change.name}: the file", [each.file_s * _NS for each in seen])
        bench.samples(f"{change.name}: the annotation", [each.annotation_s * _NS for each in seen])
        latest = bench.figure(f"{change.name}: told after, s", max(max(each) for each in seen))
        worst = max(worst, latest)
    bench.bar("the latest that a change was told", worst, at_most=CHANGE_S, unit="s")


def measure_troubles(bench: Bench, node: Node, plan: Plan) -> None:
    """From the end of a trouble until the truth is told."""
    worst = 0.0
    for trouble in TROUBLES[: plan.troubles]:
        took = recoveries_s(node, trouble, plan.rounds, lasts_s=plan.trouble_s)
        bench.samples(f"after {trouble.name}", [each * _NS for each in took])
        worst = max(worst, bench.figure(f"after {trouble.name}: true after, s", max(took)))
    bench.bar("the latest that it was true again after trouble", worst, at_most=TROUBLE_S, unit="s")


def measure_rest(bench: Bench, node: Node, plan: Plan) -> None:
    found = rest(node, plan.rest_s, settled_s=plan.settled_s)
    bench.engaged("its heart beat", found.writes["update", "leases"] or bench.smoke)
    bench.figure("quiet seconds", found.seconds)
    bench.figure("heartbeats in them", found.writes["update", "leases"])
    bench.figure("of a core: the daemon", found.daemon_s / found.seconds)
    bench.figure("of a core: the process that asks NVML", found.child_s / found.seconds)
    bench.bar("writes but for the heartbeat", found.other_writes, at_most=0, unit="writes")
    bench.bar("resident, both processes", found.resident_mib, at_most=RESIDENT_MIB, unit="MiB")
    bench.bar("at rest, both processes", found.load, at_most=LOAD, unit="of a core")


async def measure_crowd(bench: Bench, control: ControlPlane, plan: Plan) -> None:
    name = f"{plan.members} advertisers"
    async with crowd(control, plan.members) as members:
        began = time.monotonic()
        members.tell("ok")
        bench.figure(f"{name} started at once: all true and alive after, s", await members.beaten_s(began))
        await members.heard_s(began)
        await _at_rest(bench, control, plan)
        await _after_change(bench, control, members)
        if not bench.smoke:
            await _after_outage(bench, control, members, plan)


async def _at_rest(bench: Bench, control: ControlPlane, plan: Plan) -> None:
    before = await asyncio.to_thread(answers, control)
    bench.figure(f"{plan.members} advertisers started at once: 429 answers", before.throttled)
    await asyncio.sleep(plan.crowd_rest_s)
    after = await asyncio.to_thread(answers, control)
    beats = after.writes["leases"] - before.writes["leases"]
    bench.figure(f"{plan.members} advertisers at rest: heartbeats a second", beats / plan.crowd_rest_s)
    others = sum(after.writes[of] - before.writes[of] for of in ("nodes", "events"))
    bench.bar(f"{plan.members} advertisers at rest: writes but for heartbeats", others, at_most=0, unit="writes")
    turned_away = after.throttled - before.throttled
    bench.bar(f"{plan.members} advertisers at rest: 429 answers", turned_away, at_most=0, unit="answers")


async def _after_change(bench: Bench, control: ControlPlane, members: Crowd) -> None:
    """Of all nodes at the same moment, while everything serves."""
    before, began = await asyncio.to_thread(answers, control), time.monotonic()
    members.tell("degraded: a change everywhere")
    count = len(members.members)
    bench.figure(f"{count} advertisers changed at once: all true after, s", await members.told_s(began))
    await members.heard_s(began)
    turned_away = (await asyncio.to_thread(answers, control)).throttled - before.throttled
    bench.figure(f"{count} advertisers changed at once: 429 answers", turned_away)


async def _after_outage(bench: Bench, control: ControlPlane, members: Crowd, plan: Plan) -> None:
    """While the API server is away every node changes."""
    health = "degraded: a change while nobody could be told"
    await asyncio.to_thread(control.apiserver.kill)
    members.tell(health)
    await asyncio.sleep(plan.outage_s)
    control.apiserver.start()
    await asyncio.to_thread(control.apiserver.wait_ready)
    took = await members.beaten_s(time.monotonic())
    wrong = await members.wrong(health)
    bench.engaged(f"the API server has what all have told, but for {wrong[:3]}", not wrong)
    turned_away = (await asyncio.to_thread(answers, control)).throttled / plan.members
    bench.bar(f"{plan.members} advertisers true and alive after an outage", took, at_most=RETURN_S, unit="s")
    bench.bar("429 answers after the outage", turned_away, at_most=TURNED_AWAY, unit="for each")


def make_room_for_a_crowd() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> int:
    bench = Bench.from_argv("advertiser", libraries=["aiohttp", "kubernetes", "msgspec", "nvidia-ml-py", "structlog"])
    plan = SMOKE if bench.smoke else FULL
    make_room_for_a_crowd()
    with tempfile.TemporaryDirectory() as folder, node(Path(folder)) as with_cards:
        measure_changes(bench, with_cards, plan)
        measure_troubles(bench, with_cards, plan)
        measure_rest(bench, with_cards, plan)
        if bench.smoke:
            bench.run(measure_crowd(bench, with_cards.rig.control, plan))
            return bench.finish()
    with control_plane(ControlSettings(controller_manager=False, kube_scheduler=False), say=to_stderr) as control:
        bench.run(measure_crowd(bench, control, plan))
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
