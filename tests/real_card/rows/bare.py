"""What the driver does by itself: the facts that broker and library rest on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from real_card.row import Facts, Judgement, Part, Row, Runs
from real_card.rows.words import GIB, MIB, listed, ms, size, yes

_bare: Final = partial(Row, part=Part.BARE)
DEATH_MS: Final = 100
NVML_MS: Final = 5


def _abilities(facts: Facts) -> Judgement:
    return Judgement(None, listed(f"{name.replace('_', ' ')}: {yes(value)}" for name, value in facts.items()))


def _pid(facts: Facts) -> Judgement:
    found = f"listed: {yes(facts['listed'])}, with {size(facts['bytes'])}"
    return Judgement(bool(facts["listed"] and facts["bytes"]), found)


def _conformance(facts: Facts) -> Judgement:
    differences, bad = facts["differences"], facts["crashed_or_hung"]
    said = f"{facts['asked']} facts; otherwise than documented: {listed(differences)}; crashed or hung: {listed(bad)}"
    return Judgement(not differences, said)


def _contexts(facts: Facts) -> Judgement:
    told = facts["bytes"]
    last = told["500 ms"]
    agrees = last is not None and 0.25 * GIB <= last <= 0.75 * GIB and told["100 ms"] == last
    return Judgement(agrees, listed(f"{size(held)} after {moment}" for moment, held in told.items()))


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


def _pools(facts: Facts) -> Judgement:
    found = facts["reserved"]
    agrees = [found[name] // MIB for name in ("1 B", "33 MiB", "1 GiB")] == [32, 64, 1024]
    return Judgement(agrees, listed(f"{size(held)} for {name}" for name, held in found.items()))


def _managed(facts: Facts) -> Judgement:
    said = f"{size(facts['taken'])} when taken, {size(facts['touched'])} once the card had written to it"
    return Judgement(facts["touched"] >= 64 * MIB, said)


def _ipc(facts: Facts) -> Judgement:
    inner = "refused" if facts["interior"] else f"equal: {yes(facts['interior_equal'])}"
    return Judgement(facts["again_equal"], f"asked twice, equal: {yes(facts['again_equal'])}; from within: {inner}")


def _descriptors(facts: Facts) -> Judgement:
    said = (
        f"one allocation, twice: {'one inode' if facts['same_inode'] else 'two inodes'}; "
        f"another one has another inode: {yes(facts['another_inode'])}; they open {facts['opens']}"
    )
    return Judgement(None, said)


def _interior(facts: Facts) -> Judgement:
    taken = not facts["retained"]
    return Judgement(taken and facts["equal"], f"taken: {yes(taken)}, the same handle: {yes(facts['equal'])}")


def _death(facts: Facts) -> Judgement:
    times = facts["ms"]
    agrees = all(times[name] is not None and times[name] < DEATH_MS for name in ("unlisted", "free"))
    said = f"ended after {ms(times['ended'])}, unlisted after {ms(times['unlisted'])}, free after {ms(times['free'])}"
    return Judgement(agrees, f"{said}; it held {size(facts['held'])}")


def _costs(facts: Facts) -> Judgement:
    said = f"processes {facts['processes_ms']} ms (most {facts['processes_most_ms']}), memory {facts['memory_ms']} ms"
    return Judgement(facts["processes_ms"] <= NVML_MS, said)


ROWS: Final[Sequence[Row]] = [
    _bare(
        name="abilities",
        asks="Does the card read ordinary memory of the host (HMM), and page managed memory?",
        expected="no matter which; HMM decides whether memory is seen that was never asked for",
        program=("machine", "abilities"),
        judge=_abilities,
    ),
    _bare(
        name="own-pid",
        asks="Does NVML list a process by its own pid, with its bytes?",
        expected="listed, with bytes",
        program=("machine", "listed"),
        judge=_pid,
    ),
    _bare(
        name="nvml-cost",
        asks="What does a look at all processes cost?",
        expected=f"1 to {NVML_MS} ms",
        program=("machine", "costs"),
        judge=_costs,
    ),
    _bare(
        name="context-size",
        asks="What does NVML show of a context, up to 500 ms after it was made?",
        expected="0.5 to 0.6 GiB, and no more after 100 ms",
        program=("memory", "contexts"),
        judge=_contexts,
    ),
    _bare(
        name="local-memory",
        asks="What do kernels take whose threads have 1, 4 and 16 KiB of local memory?",
        expected="more with each; with 16 KiB GiBs",
        program=("memory", "locals"),
        judge=_locals,
        only_card=True,
    ),
    _bare(
        name="lazy-loading",
        asks="When does code with 64 MiB of variables take its memory?",
        expected="64 MiB, at the load or at the first launch",
        program=("memory", "loading"),
        judge=_loading,
        only_card=True,
    ),
    _bare(
        name="graph-memory",
        asks="What do 1,000 graphs of ten kernels take?",
        expected="under 1 GiB",
        program=("memory", "graphs"),
        judge=_graphs,
        limit_s=60,
        only_card=True,
    ),
    _bare(
        name="pool-steps",
        asks="What does a pool reserve for 1 B, 33 MiB and 1 GiB?",
        expected="32 MiB, 64 MiB, 1 GiB",
        program=("memory", "pools"),
        judge=_pools,
        only_card=True,
    ),
    _bare(
        name="managed-memory",
        asks="Does NVML count managed memory to its process?",
        expected="once the card has touched it",
        program=("memory", "managed"),
        judge=_managed,
        only_card=True,
    ),
    _bare(
        name="ipc-handles",
        asks="Are two handles of one allocation equal, and what of an address within it?",
        expected="equal",
        program=("handles", "ipc"),
        judge=_ipc,
        only_card=True,
    ),
    _bare(
        name="descriptors",
        asks="Can two descriptors of one allocation be told from those of another?",
        expected="not known before",
        program=("handles", "descriptors"),
        judge=_descriptors,
        only_card=True,
    ),
    _bare(
        name="interior-address",
        asks="Does the driver take an address within a mapping for the mapping?",
        expected="yes, and the same handle",
        program=("handles", "interior"),
        judge=_interior,
        only_card=True,
    ),
    _bare(
        name="death",
        asks="How long does a killed process stay listed, and its memory taken?",
        expected=f"under {DEATH_MS} ms",
        program=("memory", "death"),
        judge=_death,
        only_card=True,
    ),
    _bare(
        name="conformance",
        asks="Does the driver answer as documented? (`make conformance`)",
        expected="no difference that is not listed with its reason",
        program=("probes", "conformance"),
        judge=_conformance,
        runs=Runs.STAGE,
        limit_s=240,
    ),
]
