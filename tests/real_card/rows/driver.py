"""The driver's own behaviour: the facts that broker and library depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from real_card.row import Facts, Judgement, Row
from real_card.rows.words import GIB, MIB, listed, size, yes

NVML_MS: Final = 5


def _abilities(facts: Facts) -> Judgement:
    return Judgement(None, listed(f"{name.replace('_', ' ')}: {yes(value)}" for name, value in facts.items()))


def _contexts(facts: Facts) -> Judgement:
    told = facts["bytes"]
    last = told["500 ms"]
    agrees = last is not None and 0.25 * GIB <= last <= 0.75 * GIB and told["100 ms"] == last
    listed_as = "its own pid is listed" if facts["listed"] else "its own pid is not listed"
    return Judgement(agrees, f"{listed_as}; {listed(f'{size(held)} after {moment}' for moment, held in told.items())}")


def _locals(facts: Facts) -> Judgement:
    grown = facts["grown"]
    said = listed(f"{size(more)} with {size(int(count))}" for count, more in grown.items())
    return Judgement(grown["16384"] >= 512 * MIB and grown["16384"] > grown["1024"], said)


def _loading(facts: Facts) -> Judgement:
    agrees = all(64 * MIB <= told["loaded"] + told["launched"] <= 128 * MIB for told in facts.values())
    found = (f"{how}: {size(told['loaded'])} at the load, {size(told['launched'])} more" for how, told in facts.items())
    return Judgement(agrees, listed(found))


def _graphs(facts: Facts) -> Judgement:
    said = (
        f"{facts['graphs']} graphs took {size(facts['grown'])}; {size(facts['left'])} stayed when they were destroyed"
    )
    return Judgement(facts["grown"] < GIB, said)


def _managed(facts: Facts) -> Judgement:
    said = listed(
        f"{size(facts[name])} of the process and {size(facts[f'{name}_used'])} of the card {when}"
        for name, when in (
            ("taken", "when taken"),
            ("touched", "once written by the card"),
            ("gone", "once moved away"),
        )
    )
    return Judgement(facts["touched"] == 0 and facts["touched_used"] >= 64 * MIB, said)


def _moves(facts: Facts) -> Judgement:
    return Judgement(None, listed(f"{name}: {rate:g} GB/s" for name, rate in facts.items()))


def _costs(facts: Facts) -> Judgement:
    said = f"processes {facts['processes_ms']} ms (most {facts['processes_most_ms']}), memory {facts['memory_ms']} ms"
    return Judgement(facts["processes_ms"] <= NVML_MS, said)


ROWS: Final[Sequence[Row]] = [
    Row(
        name="abilities",
        asks="Does the card read ordinary memory of the host (HMM), and page managed memory?",
        expected="no matter which; HMM decides whether memory is seen that was never asked for",
        program=("machine", "abilities"),
        judge=_abilities,
    ),
    Row(
        name="nvml-cost",
        asks="What does a look at all processes cost?",
        expected=f"1 to {NVML_MS} ms",
        program=("machine", "costs"),
        judge=_costs,
    ),
    Row(
        name="context-size",
        asks="Does NVML list a process by its own pid, and with what, up to 500 ms after its context was made?",
        expected="listed, with 0.5 to 0.6 GiB, and no more after 100 ms",
        program=("memory", "contexts"),
        judge=_contexts,
    ),
    Row(
        name="local-memory",
        asks="What do kernels take whose threads have 1, 4 and 16 KiB of local memory?",
        expected="more with each; with 16 KiB GiBs",
        program=("memory", "locals"),
        judge=_locals,
        only_card=True,
    ),
    Row(
        name="lazy-loading",
        asks="When does code with 64 MiB of variables take its memory?",
        expected="64 MiB, at the load or at the first launch",
        program=("memory", "loading"),
        judge=_loading,
        only_card=True,
    ),
    Row(
        name="graph-memory",
        asks="What do 1,000 graphs of ten kernels take?",
        expected="under 1 GiB",
        program=("memory", "graphs"),
        judge=_graphs,
        only_card=True,
    ),
    Row(
        name="managed-memory",
        asks="Does NVML count managed memory, to its process and as used?",
        expected="as used while it is on the card, and to no process",
        program=("memory", "managed"),
        managed_bytes=64 * MIB,
        judge=_managed,
        only_card=True,
    ),
    Row(
        name="managed-speed",
        asks="How fast does managed memory move, by faults and by prefetch?",
        expected="by prefetch as fast as the link, by faults a part of it",
        program=("memory", "moves"),
        managed_bytes=2 * GIB,
        judge=_moves,
        cost_s=12,
        only_card=True,
    ),
]
