"""What programs have in a container of 20 GiB: the same as without, until there is no more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from real_card.row import Facts, Judgement, Part, Row, Runs
from real_card.rows.words import MIB, findings, listed, size

_library: Final = partial(Row, part=Part.LIBRARY)
_both: Final = partial(_library, runs=Runs.BOTH, limit_s=90, expected="the same as without the library, no findings")
_contained: Final = partial(_library, runs=Runs.CONTAINED)
_SLACK: Final = 64 * MIB
"""By how much a card may show more than was lent before the broker calls that a fault."""


def _names(facts: Facts) -> Judgement:
    bare, more = listed(facts["leaks"]), facts["lacking_but_there"]
    said = f"{facts['asked']} questions, bare answers: {bare}; names that the driver lacks: {more}"
    return Judgement(not facts["leaks"] and not facts["lacking_but_there"], said)


def _same(facts: Facts) -> Judgement:
    bare, there = facts["bare"], facts["contained"]
    differ = [name for name in bare if bare[name] != there.get(name)]
    said = listed(f"{name} {bare[name]}" + (f", there {there.get(name)}" if name in differ else "") for name in bare)
    return Judgement(not differ and not facts["findings"], said + findings(facts["findings"]))


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


ROWS: Final[Sequence[Row]] = [
    _library(
        name="names",
        asks="Does a hooked function of the driver come back bare, by any name, version and flag?",
        expected="none does, and no name is there that the driver lacks",
        program=("probes", "names"),
        judge=_names,
        runs=Runs.STAGE,
        limit_s=60,
    ),
    _contained(
        name="fill",
        asks="A program takes all, then runs a kernel with 8 KiB of local memory, then 500 graphs.",
        expected="CUDA_ERROR_OUT_OF_MEMORY at the limit; then refused or done; no findings",
        program=("edges", "fill"),
        judge=_fill,
        limit_s=60,
    ),
    _contained(
        name="exits",
        asks="300 programs end while their kernels run.",
        expected="each ends with 0",
        program=("edges", "exits"),
        judge=_exits,
        limit_s=120,
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
        judge=_managed_pool,
    ),
    _both(
        name="cuda-runtime",
        asks="CUDA's runtime takes all there is, gives it back, takes again.",
        program=("runtime", "fill"),
        judge=_same,
    ),
    _both(
        name="torch",
        asks="PyTorch: a product, a convolution, 20 steps of training, a replayed graph.",
        program=("frameworks", "torch"),
        judge=_same,
    ),
    _both(name="torch-compile", asks="torch.compile.", program=("frameworks", "torch-compile"), judge=_same),
    _both(
        name="torch-fill",
        asks="PyTorch takes all there is, and goes on.",
        program=("frameworks", "torch-fill"),
        judge=_same,
    ),
    _both(
        name="torch-async",
        asks="The same with cudaMallocAsync.",
        program=("frameworks", "torch-fill"),
        judge=_same,
        environment=(("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"),),
    ),
    _both(
        name="torch-expandable",
        asks="The same with expandable segments.",
        program=("frameworks", "torch-fill"),
        judge=_same,
        environment=(("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),),
    ),
    _both(
        name="torch-spawn",
        asks="A tensor goes to a spawned process by CUDA IPC.",
        program=("frameworks", "torch-spawn"),
        judge=_same,
    ),
    _both(name="jax", asks="JAX: a compiled product.", program=("frameworks", "jax"), judge=_same),
    _both(name="cupy", asks="CuPy: a kernel of its own, a sort.", program=("frameworks", "cupy"), judge=_same),
    _both(name="numba", asks="numba: events, a fill.", program=("frameworks", "numba"), judge=_same),
]
