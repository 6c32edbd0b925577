"""Programs in a container of 20 GiB: the same as without, until memory is exhausted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from real_card.row import Facts, Judgement, Row, Runs
from real_card.rows.words import GIB, MIB, findings, listed, ms, size, yes

_both: Final = partial(Row, runs=Runs.BOTH, cost_s=20, expected="the same as without the library, no findings")
_contained: Final = partial(Row, runs=Runs.CONTAINED)
DEATH_MS: Final = 100
UNLISTED_MS: Final = 2
OUT_OF_MEMORY: Final = 2
_SLACK: Final = 64 * MIB
"""How much more a card may show than was lent before the broker reports a violation."""


def _names(facts: Facts) -> Judgement:
    bare, more = listed(facts["leaks"]), facts["lacking_but_there"]
    said = f"{facts['asked']} questions, bare answers: {bare}; names that the driver lacks: {more}"
    return Judgement(not facts["leaks"] and not facts["lacking_but_there"], said)


def _same(facts: Facts) -> Judgement:
    bare, there = facts["bare"], facts["contained"]
    differ = [name for name in bare if bare[name] != there.get(name)]
    said = listed(f"{name} {bare[name]}" + (f", there {there.get(name)}" if name in differ else "") for name in bare)
    return Judgement(not differ and not facts["findings"], said + findings(facts["findings"]))


def _torch(facts: Facts) -> Judgement:
    agrees, said = _same(facts)
    there = facts["contained"]
    refused = there["refused"] == "OutOfMemoryError" and there["afterwards"] == there["trained"]
    return Judgement(
        bool(agrees and refused), f"{said}; at the limit {there['refused']}, and it goes on: {yes(refused)}"
    )


def _refused(facts: Facts) -> Judgement:
    there = facts["contained"]
    said = f"{there['refused']}, and training afterwards ends at {there['afterwards']}"
    return Judgement(
        there["refused"] == "OutOfMemoryError" and not facts["findings"], said + findings(facts["findings"])
    )


def _death(facts: Facts) -> Judgement:
    times = facts["ms"]
    agrees = all(times[name] is not None and times[name] < DEATH_MS for name in ("unlisted", "free"))
    said = f"ended after {ms(times['ended'])}, unlisted after {ms(times['unlisted'])}, free after {ms(times['free'])}"
    return Judgement(agrees, f"{said}; it held {size(facts['held'])}")


def _death_managed(facts: Facts) -> Judgement:
    agrees, said = _death(facts)
    times = facts["ms"]
    return Judgement(bool(agrees and times["free"] - times["unlisted"] <= UNLISTED_MS), said)


def _death_contained(facts: Facts) -> Judgement:
    agrees, said = _death(facts["contained"])
    return Judgement(bool(agrees and not facts["findings"]), said + findings(facts["findings"]))


def _fill(facts: Facts) -> Judgement:
    there: dict[str, Any] = facts["contained"]
    within = there["taken"] <= facts["limit"] and (there["shown"] is None or there["shown"] <= facts["limit"] + _SLACK)
    calm = there["refusal"] == 2 and {there["locals"], there["graphs"]} <= {"done", "out of memory"}
    said = (
        f"{size(there['taken'])} of {size(facts['limit'])} taken, then {there['refusal']}; 8 KiB of local memory: "
        f"{there['locals']}; graphs: {there['graphs']} after {there['made']}; shown {size(there['shown'])}"
    )
    return Judgement(calm and within and not facts["findings"], said + findings(facts["findings"]))


def _exits(facts: Facts) -> Judgement:
    there = facts["contained"]
    said = f"{there['exits']} ends, bad ones: {listed(map(str, there['bad']))}"
    return Judgement(not there["bad"] and not facts["findings"], said + findings(facts["findings"]))


def _smi(facts: Facts) -> Judgement:
    there, limit = facts["contained"], facts["limit"] // MIB
    said = f"{there['total_mib']} MiB in all, the limit is {limit}; processes of others: {there['others']}"
    return Judgement(there["total_mib"] == limit and not there["others"], said)


def _green(facts: Facts) -> Judgement:
    there = facts["contained"]
    said = listed(f"{name}: {value}" for name, value in there.items())
    return Judgement(not any(there.values()) and not facts["findings"], said + findings(facts["findings"]))


def _managed_pool(facts: Facts) -> Judgement:
    there = facts["contained"]
    if not there["made"]:
        return Judgement(None, f"the driver makes no such pool: {there['answer']}")
    said = f"an allocation of 64 MiB answered {there['answer']}, and lowered what is free by {size(there['lowered'])}"
    charged = there["lowered"] >= 64 * MIB
    return Judgement((charged or bool(there["answer"])) and not facts["findings"], said + findings(facts["findings"]))


def _managed_limit(facts: Facts) -> Judgement:
    there = facts["contained"]
    said = f"{size(there['asked'])} answered {there['answer']}"
    return Judgement(there["answer"] == OUT_OF_MEMORY and not facts["findings"], said + findings(facts["findings"]))


def _suspended(facts: Facts) -> Judgement:
    """Judge the container's result, where the driver alone keeps contents; its duration without the library is shown.

    A simulated card has no contents of this size.
    """
    bare, there = facts["bare"], facts["contained"]
    kept, whole = (all(each.get("after", {}).get("right") for each in of["sizes"].values()) for of in (bare, there))
    said = listed(
        f"{size(int(held))} out in {_took(told, 'lock', 'checkpoint')}, back in {_took(told, 'restore', 'unlock')}"
        for held, told in bare["sizes"].items()
    )
    is_right = whole and not facts["findings"]
    return Judgement(
        is_right if kept or facts["findings"] else None,
        f"{said}; whole in a container: {yes(whole)}" + findings(facts["findings"]),
    )


def _took(told: Facts, *steps: str) -> str:
    wrong = [f"{step} answered {told[step]['answer']}" for step in steps if step in told and told[step]["answer"]]
    return listed(wrong) if wrong else ms(round(sum(told[step]["ms"] for step in steps if step in told), 1))


ROWS: Final[Sequence[Row]] = [
    Row(
        name="torch",
        asks="PyTorch: a product, a convolution, 20 steps of training, a replayed graph; then all the memory.",
        expected="the same as without the library, OutOfMemoryError at the limit, no findings",
        program=("frameworks", "torch"),
        judge=_torch,
        runs=Runs.BOTH,
        cost_s=30,
    ),
    Row(
        name="death",
        asks="How long does a killed process stay listed, and its memory taken?",
        expected=f"under {DEATH_MS} ms",
        program=("memory", "death"),
        judge=_death,
        only_card=True,
    ),
    Row(
        name="managed-death",
        asks="The same of managed memory: is it free once the process is not listed?",
        expected=f"free within {UNLISTED_MS} ms of being unlisted: the broker frees it then",
        program=("memory", "death", "managed"),
        judge=_death_managed,
        managed_bytes=GIB,
        only_card=True,
    ),
    _contained(
        name="memory-back",
        asks="The same in a container: when has its limit room for the next program?",
        expected=f"under {DEATH_MS} ms, no findings",
        program=("memory", "death"),
        judge=_death_contained,
        only_card=True,
    ),
    Row(
        name="names",
        asks="Does a hooked function of the driver come back bare, by any name, version and flag?",
        expected="none does, and no name is there that the driver lacks",
        program=("probes", "names"),
        judge=_names,
        runs=Runs.STAGE,
        cost_s=8,
    ),
    _contained(
        name="fill",
        asks="A program takes all, then runs a kernel with 8 KiB of local memory, then 500 graphs.",
        expected="CUDA_ERROR_OUT_OF_MEMORY at the limit; then refused or done; no findings",
        program=("edges", "fill"),
        judge=_fill,
        cost_s=6,
    ),
    _contained(
        name="exits",
        asks="Up to 300 programs end while their kernels run.",
        expected="each ends with 0",
        program=("edges", "exits"),
        judge=_exits,
        cost_s=25,
    ),
    _contained(
        name="nvidia-smi",
        asks="What does nvidia-smi show in a container?",
        expected="the limit, and no processes of others",
        program=("machine", "smi"),
        judge=_smi,
        only_card=True,
    ),
    _contained(
        name="green-context",
        asks="A green context is destroyed under a stream that works; are captures and waits still right?",
        expected="all calls answer 0",
        program=("edges", "green"),
        judge=_green,
    ),
    _contained(
        name="managed-pool",
        asks="Is memory of a managed pool (CUDA 13) charged?",
        expected="charged or refused",
        program=("memory", "managed-pool"),
        managed_bytes=64 * MIB,
        judge=_managed_pool,
    ),
    Row(
        name="managed-limit",
        asks="A program asks for managed memory beyond its limit.",
        expected="CUDA_ERROR_OUT_OF_MEMORY, no findings",
        program=("memory", "managed-limit"),
        judge=_managed_limit,
        runs=Runs.CONTAINED,
        managed_bytes=20 * GIB + 64 * MIB,
    ),
    _both(
        name="cuda-runtime",
        asks="CUDA's runtime takes all there is, gives it back, takes again.",
        program=("runtime", "fill"),
        judge=_same,
    ),
    *(
        _contained(
            name=f"torch-{name}",
            asks=f"PyTorch takes all there is with {setting}, and goes on.",
            expected="OutOfMemoryError, no findings",
            program=("frameworks", "torch-fill"),
            judge=_refused,
            cost_s=12,
            environment=(("PYTORCH_CUDA_ALLOC_CONF", setting),),
        )
        for name, setting in (("async", "backend:cudaMallocAsync"), ("expandable", "expandable_segments:True"))
    ),
    _both(
        name="torch-compile",
        asks="torch.compile.",
        program=("frameworks", "torch-compile"),
        judge=_same,
        cost_s=60,
    ),
    _both(name="triton", asks="Triton: a kernel of its own.", program=("frameworks", "triton"), judge=_same),
    _both(
        name="torch-spawn",
        asks="A tensor goes to a spawned process by CUDA IPC.",
        program=("frameworks", "torch-spawn"),
        judge=_same,
    ),
    _both(
        name="checkpoint",
        asks="The driver takes a process from the card and brings it back.",
        expected="all contents are there afterwards, no findings",
        program=("checkpoint", "suspend"),
        judge=_suspended,
        managed_bytes=64 * MIB,
        cost_s=30,
    ),
    _both(name="jax", asks="JAX: a compiled product.", program=("frameworks", "jax"), judge=_same),
    _both(name="cupy", asks="CuPy: a kernel of its own, a sort.", program=("frameworks", "cupy"), judge=_same),
    _both(name="numba", asks="numba: events, a fill.", program=("frameworks", "numba"), judge=_same),
]
