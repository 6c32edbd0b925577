"""One user and one container do all they can to harm others: nobody else may notice.

    make soak-hostile                                       # 10 minutes
    tools/named soak hostile --seconds 60 --without prefixes  # with a mechanism taken out of a copy: must not hold
    tools/named soak hostile --list-mechanisms

Two real nodes with simulated cards and all of our daemons, a real API server, and made-up nodes for the rate. First
innocent pods come alone, then beside an attacker: a user with the role `edit` in another namespace, connections to our
ports, containers that flood the broker of their node, and one on a card that it shares. Pods are judged by the API
server's own history, containers' use of a card by that card's own account, daemons by their processes and by probes
like a kubelet's, and the broker by an innocent container that calls it.

The attack saturates a small machine, so waits are judged without a daemon's waiting time for a processor: only the
delay by the daemon itself. Whole waits are printed beside that.

It prints a table and, as its last line, one JSON object. Exit status: 0 when everything was correct; 3 when not, or
when a part of the attack did not take place, so that nothing is proved. With --without it is 0 when the verdict that
needs the mechanism failed, and 3 when not.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import uvloop
from msgspec.structs import replace

from partage_base.keyring import KeyFolders, load_public_keys
from partage_base.kube import Access, ApiServer
from rig.client.resources import ADMISSION_POLICIES, NAMESPACES, PRIORITY_CLASSES, RESOURCE_QUOTAS
from rig.control.settings import ControlSettings
from rig.identity.people import ALICE, TEAM
from soak.harness import EXIT_WRONG, ended, say
from soak.scheduling.account import account
from soak.scheduling.history import at_share
from soak.siege.attacker import QUOTA
from soak.siege.bare import Bare
from soak.siege.brokered import Brokered, brokered, p99
from soak.siege.card import SharedCard, shared_card
from soak.siege.copies import run_without
from soak.siege.course import AT_ONCE, Course, Parties, Plan, own_waits, twins, waits
from soak.siege.innocents import NAMESPACE
from soak.siege.mechanisms import MECHANISMS
from soak.siege.observed import MODULE, NOTES
from soak.siege.origin import require_own
from soak.siege.papers import Papers
from soak.siege.ports import Port
from soak.siege.urgent import FOR_NOBODY, PRIORITY_CLASS
from soak.siege.verdicts import Verdict, Wrong
from support.advertiser_stage import PORT
from support.chain_stage import Chain, chained
from support.chart import helm_in

WITHOUT_LIFE_CYCLES: Final = ControlSettings(
    apiserver_flags={"disable-admission-plugins": "TaintNodesByCondition"},
    controller_manager_flags={"controllers": "*,-node-lifecycle-controller"},
)
"""Made-up nodes have no kubelet whose silence could be noticed."""
FLAGS: Final = ("--longest-grace-s", "5", "--lease-s", "15", "--renew-s", "10", "--retry-s", "2")
"""Flags of the scheduler: its lease is as in a cluster, and victims leave soon."""
NOTES_FILE: Final = "waits"
SHARES: Final = "partage-shares"
HARM: Final = {
    "choose a node by HAMi's words": (Verdict.REFUSED, Verdict.PLACED),
    "nest": (Verdict.WATCHES, Verdict.PLACED, Verdict.CARDS),
    "long texts": (Verdict.MEMORY, Verdict.LIVES, Verdict.WAITS),
    "pieces": (Verdict.BROKER, Verdict.CARD_TIME),
    "greetings": (Verdict.BROKER, Verdict.CARD_TIME),
}
"""Possible harm of those acts that have a separate row in the table."""


def figures_of(course: Course) -> dict[str, float]:
    calm, hostile = course.pairs()
    neighbour, attacker = course.card.shares()
    alone, beside, *_ = course.machine.parts
    asked_alone, asked_beside = course.brokered.since(course.hostile_since)
    return {
        "innocents_alone": len(calm),
        "innocents_beside": len(hostile),
        "p50_alone_s": at_share(waits(calm), 0.5),
        "p50_beside_s": at_share(waits(hostile), 0.5),
        "p99_alone_s": at_share(waits(calm), 0.99),
        "p99_beside_s": at_share(waits(hostile), 0.99),
        "twins_p99_alone_s": at_share(twins(calm), 0.99),
        "twins_p99_beside_s": at_share(twins(hostile), 0.99),
        "p99_own_alone_s": at_share(own_waits(calm), 0.99),
        "p99_own_beside_s": at_share(own_waits(hostile), 0.99),
        "longest_own_beside_s": max(own_waits(hostile), default=0.0),
        "scheduler_stalled_beside": course.stalled,
        "machine_idle_alone": alone.idle,
        "machine_idle_beside": beside.idle,
        "machine_stolen_alone": alone.stolen,
        "machine_stolen_beside": beside.stolen,
        "soak_late_alone_s": alone.worst_lag_s,
        "soak_late_beside_s": beside.worst_lag_s,
        "acts_a_second": course.plan.acts,
        "acts": sum(course.attacker.done.values()),
        "acts_without_room": course.attacker.full,
        "connections": sum(each.opened for each in course.squatters),
        "probes_answered": sum(each.answered for each in course.probes),
        "probes_failed": sum(each.failed for each in course.probes),
        "probes_late": sum(each.late for each in course.probes),
        "probes_starved": sum(each.starved for each in course.probes),
        "longest_own_probe_s": max(each.worst_own_s for each in course.probes),
        "urgent_placed": course.urgent.placed,
        "fullest_card_milli": course.history.fullest_milli,
        "neighbours_share": neighbour,
        "attackers_share": attacker,
        "attackers_share_in_10_s": course.card.fullest(),
        "attackers_most_mib": course.card.most_bytes >> 20,
        "broker_asked_alone": len(asked_alone),
        "broker_asked_beside": len(asked_beside),
        "broker_not_served_beside": sum(not each.is_served for each in asked_beside),
        "broker_p99_alone_s": p99(asked_alone),
        "broker_p99_beside_s": p99(asked_beside),
        "broker_longest_beside_s": max((each.took_s for each in asked_beside), default=0.0),
        "scheduler_descriptors": course.descriptors,
        "scheduler_rss_mib": course.rss_mib,
    }


def told(course: Course, wrong: Sequence[Wrong], unproved: Sequence[str]) -> int:
    say(*(f"waited {line}" for line in course.slowest()))
    failed = {each.verdict for each in wrong}
    done = {**course.attacker.done, "pieces": course.brokered.pieces, "greetings": course.brokered.greetings}
    for act, verdicts in HARM.items():
        held = [f"{each} {'FAILED' if each in failed else 'held'}" for each in verdicts]
        say(f"{act:32}{done.get(act, 0):10}  {', '.join(held)}")
    return ended(
        "hostile",
        wrong,
        dict.fromkeys(unproved, False),
        failed=sorted(map(str, failed)),
        plan=msgspec.to_builtins(course.plan),
        by_act=done,
        **figures_of(course),
    )


async def lived_through(plan: Plan, chain: Chain, papers: Papers) -> int:
    cluster = chain.rig.cluster
    cluster.api.create(NAMESPACES.at(), {"metadata": {"name": NAMESPACE}})
    cluster.api.create(PRIORITY_CLASSES.at(), PRIORITY_CLASS)
    cluster.api.create(RESOURCE_QUOTAS.at(TEAM), {"metadata": {"name": "team"}, "spec": {"hard": QUOTA}})
    cluster.api.create(RESOURCE_QUOTAS.at(TEAM), {"metadata": {"name": "urgent"}, "spec": FOR_NOBODY})
    card, bare, asks = await asyncio.to_thread(on_nodes, chain)
    own = await asyncio.to_thread(Access.find, account(cluster))
    hers = await asyncio.to_thread(Access.find, cluster.as_person(ALICE).kubectl.kubeconfig)
    async with (
        ApiServer(own, user_agent="soak", connections=AT_ONCE + 8, deadline_s=60) as admin,
        ApiServer(hers, user_agent="alice", connections=8, deadline_s=60) as user,
    ):
        ports = [replace(each, pid=chain.scheduler.pid) for each in (papers.metrics, papers.extender)]
        ports += [
            Port(f"advertiser {name}", str(stage.machine.addresses.ip), PORT, stage.started[-1].pid)
            for name, stage in chain.advertisers.items()
        ]
        course = Course(plan, Parties(admin, user, chain, card, bare, asks, ports, chain.root / NOTES_FILE))
        await course.run(say)
    course.history.verified(load_public_keys(KeyFolders.at_root(chain.root).public).keys)
    return told(course, list(course.wrong()), list(course.unproved()))


def on_nodes(chain: Chain) -> tuple[SharedCard, Bare, Brokered]:
    """Containers of the siege; the API server knows HAMi's resources, by the chart's policy for such a scheduler."""
    rendered = helm_in(chain.root).rendered("nvidiaGpu=hami", "image.registry=none", folders=["scheduler"])
    (policy,) = (
        each for each in rendered if (each["kind"], each["metadata"]["name"]) == ("ValidatingAdmissionPolicy", SHARES)
    )
    chain.rig.cluster.api.patch(ADMISSION_POLICIES.at(name=SHARES), {"spec": policy["spec"]})
    card = shared_card(chain)
    return card, Bare(chain), brokered(chain, beside=card.card)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="soak hostile", description="one user and one container try to harm others")
    found.add_argument("--seconds", type=float, default=600, help="beside the attacker, by default 600")
    found.add_argument("--calm-s", type=float, default=120, help="before it, by default 120")
    found.add_argument("--rate", type=float, default=5, help="innocent pods a second, by default 5")
    found.add_argument("--acts", type=float, default=1, help="of the user, a second, by default 1")
    found.add_argument("--nodes", type=int, default=50, help="made up, by default 50, of eight cards each")
    found.add_argument("--seed", type=int, default=0, help="of everything that happens by chance")
    found.add_argument("--without", action="append", default=[], choices=sorted(MECHANISMS), help="taken out of a copy")
    found.add_argument("--list-mechanisms", action="store_true", help="what can be taken out, and what then fails")
    return found


def main() -> int:
    said = vars(parser().parse_args())
    taken_out, listed = said.pop("without"), said.pop("list_mechanisms")
    plan = Plan(**said)
    if listed:
        for name, each in MECHANISMS.items():
            say(f"{name:14} {each.what} Without it: {' or '.join(each.fails)}.")
        return 0
    if taken_out:
        return seen_to_fail(taken_out, plan)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        papers = Papers(root)
        flags = (*papers.flags, *FLAGS)
        os.environ[NOTES] = str(root / NOTES_FILE)  # the scheduler inherits this environment
        with chained(
            root, say=say, control=WITHOUT_LIFE_CYCLES, flags=flags, nvidia_gpu="hami", scheduler=MODULE
        ) as chain:
            require_own(chain)
            return uvloop.run(lived_through(plan, chain, papers))


def seen_to_fail(names: Sequence[str], plan: Plan) -> int:
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in msgspec.to_builtins(plan).items()]
    failed = run_without(names, arguments)
    held = [name for name in names if failed.isdisjoint(MECHANISMS[name].fails)]
    for name in names:
        verdicts = " or ".join(MECHANISMS[name].fails)
        say(f"without {name}: {verdicts} {'HELD, and must not' if name in held else 'fails, as it must'}")
    return EXIT_WRONG if held else 0


if __name__ == "__main__":
    raise SystemExit(main())
