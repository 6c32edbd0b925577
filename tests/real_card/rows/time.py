"""Time: the cost of launches through the library, shares, and ways that might bypass the meter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Final

from real_card.row import Facts, Judgement, Row, Runs
from real_card.rows.words import findings, parts

_time: Final = partial(Row, runs=Runs.STAGE, cost_s=12)
_SHARE: Final = 0.02
_WHOLE: Final = 0.95
_OVERLAP: Final = 1.02
"""Parts with a larger sum overlapped: nobody had the card alone."""
_BESIDE_MS: Final = 25.0
_CEILING: Final = 0.1
_ALONE: Final = 0.97
"""Part of the speed of the same program alone on the card without the library."""


def _cost(at_most_ns: float, at_most_part: float) -> Callable[[Facts], Judgement]:
    """Judge by a part of the launch's cost without the library, or by an absolute amount that is always acceptable."""

    def judge(facts: Facts) -> Judgement:
        added, alone = facts["added_ns"], facts["driver_ns"]
        said = f"{added:+g} ns on {alone:g}, {100 * added / alone:+.1f} %"
        return Judgement(facts["interposed"] and added <= max(at_most_ns, at_most_part * alone), said)

    return judge


def _shares(wanted: float) -> Callable[[Facts], Judgement]:
    def judge(facts: Facts) -> Judgement:
        found, whole, alone = facts["parts"], facts["sum"], facts["alone"]
        fair = abs(found[0] / max(whole, 1e-9) - wanted) <= _SHARE
        said = (
            f"{parts(found)}, together {whole:.3f}, and one alone without the library {alone:.3f}; "
            f"the broker's account: {parts(facts['account'])}"
        )
        agrees = fair and _WHOLE * alone <= whole <= _OVERLAP and not facts["findings"]
        return Judgement(agrees, said + findings(facts["findings"]))

    return judge


def _unmetered(wanted: float) -> Callable[[Facts], Judgement]:
    def judge(facts: Facts) -> Judgement:
        found, whole = facts["parts"], facts["sum"]
        differs = abs(found[0] / max(whole, 1e-9) - wanted) > _SHARE
        return Judgement(differs, f"{parts(found)}, together {whole:.3f}")

    return judge


def _both_go_on(facts: Facts) -> Judgement:
    said = f"{parts(facts['parts'])}; the broker's account: {parts(facts['account'])}"
    return Judgement(min(facts["parts"]) > 0.2, said + findings(facts["findings"]))


def _ceiling(facts: Facts) -> Judgement:
    said = f"{facts['part']:.3f} of the card; the broker's account: {facts['account']:.3f}"
    return Judgement(abs(facts["part"] - _CEILING) <= _SHARE, said)


def _as_alone(facts: Facts) -> Judgement:
    said = f"{facts['bare']:.3f} of the card without the library, {facts['contained']:.3f} with it"
    return Judgement(facts["contained"] >= _ALONE * facts["bare"], said)


def _inference(facts: Facts) -> Judgement:
    alone, beside = facts["alone"], facts["beside"]
    said = f"p99 {alone['p99_ms']:g} ms alone, {beside['p99_ms']:g} beside the flood"
    return Judgement(beside["p99_ms"] <= alone["p99_ms"] + _BESIDE_MS, said)


def _trainings(wanted: float) -> Callable[[Facts], Judgement]:
    def judge(facts: Facts) -> Judgement:
        found = facts["parts"]
        said = f"{parts(found)} of the steps that one makes alone, together {sum(found):.3f}"
        fair = abs(found[0] / max(sum(found), 1e-9) - wanted) <= _SHARE
        return Judgement(fair and not facts["findings"], said + findings(facts["findings"]))

    return judge


def _trained(facts: Facts) -> Judgement:
    bare, there, unmetered = (median(facts[name]) for name in ("bare", "contained", "unmetered"))
    said = f"{bare:g} steps a second without the library, {there:g} with it, {unmetered:g} where nobody meters time"
    return Judgement(there >= _ALONE * bare, said)


def _tool(facts: Facts) -> Judgement:
    said = (
        f"ended with {facts['ended']} after {facts['seconds']:g} s; the program ran through: {facts.get('ran', False)}"
    )
    return Judgement(facts["ended"] == 0 and bool(facts.get("ran")), said)


def _costs() -> Iterator[Row]:
    for kind, what, most_ns, percent in (("kernel", "launch", 10, 3), ("graph", "graph launch", 50, 5)):
        for when, words in (("free", "alone on the card"), ("leased", "while another floods the card")):
            yield _time(
                name=f"{kind}-cost-{when}",
                asks=f"What does a {what} cost more, {words}?",
                expected=f"at most {most_ns} ns of the thread's time, or {percent} % of a {what}",
                program=("costs", when, kind),
                cost_s=4,
                judge=_cost(most_ns, percent / 100),
                only_card=True,
            )


def _floods() -> Iterator[Row]:
    for share, other in ((300, 700), (100, 900)):
        for how, us, what in (
            ("queue", 10, "kernels of 10 µs"),
            ("queue", 1000, "kernels of 1 ms"),
            ("queue", 30000, "kernels of 30 ms"),
            ("wait", 1000, "1 ms, launched and waited for"),
        ):
            yield _time(
                name=f"shares-{share // 10}-{other // 10}-{how}-{us}us",
                asks=f"Shares of {share // 10} and {other // 10} %: {what}.",
                expected=f"{share / 1000:.1f} and {other / 1000:.1f} within .02, together 95 % of what one alone gets",
                program=("shares", "shares", str(share), str(us), how),
                judge=_shares(share / 1000),
            )


ROWS: Final[Sequence[Row]] = [
    *_costs(),
    *_floods(),
    _time(
        name="control",
        asks="The control: 30 and 70 % with `free-run`, kernels of 1 ms.",
        expected="not .3 and .7: the card divides its time by itself",
        program=("shares", "unmetered", "300", "1000"),
        judge=_unmetered(0.3),
    ),
    _time(
        name="shares-blocking",
        asks="30 and 70 % with CUDA_LAUNCH_BLOCKING=1, kernels of 1 ms.",
        expected="0.3 and 0.7 within .02, together 95 % of what one alone gets",
        program=("shares", "shares", "300", "1000", "queue", "blocking"),
        judge=_shares(0.3),
    ),
    _time(
        name="inference",
        asks="Requests of 6 ms with a share of 50 % beside a flood: their 99th percentile.",
        expected="at most 25 ms more than alone",
        program=("shares", "inference", "500", "1000"),
        judge=_inference,
        cost_s=16,
    ),
    _time(
        name="inference-torch",
        asks="A transformer of PyTorch's with a share of 50 % beside a flood: the 99th percentile of its requests.",
        expected="at most 25 ms more than alone",
        program=("shares", "inference", "500", "1000", "torch"),
        judge=_inference,
        cost_s=40,
    ),
    _time(
        name="torch-speed",
        asks="PyTorch trains a transformer, alone on the card, bare and in a container in turns.",
        expected="at least 97 % of what it gets without the library",
        program=("shares", "trained"),
        judge=_trained,
        cost_s=30,
        only_card=True,
    ),
    _time(
        name="torch-shares",
        asks="Two trainings of PyTorch's with shares of 30 and 70 %.",
        expected="0.3 of their steps within .02, no findings",
        program=("shares", "trainings", "300"),
        judge=_trainings(0.3),
        cost_s=30,
        only_card=True,
    ),
    _time(
        name="past-context",
        asks="A flood limited to 10 %, in a context that was made past the library.",
        expected="0.1 within .02",
        program=("shares", "ceiling", "past", "100"),
        judge=_ceiling,
    ),
    _time(
        name="absolute-path",
        asks="The same, by the absolute path of the driver.",
        expected="0.1 within .02",
        program=("shares", "ceiling", "past", "100", "absolute"),
        judge=_ceiling,
    ),
    _time(
        name="open-capture",
        asks="A flood limited to 10 % in the legacy stream, while a capture is never ended.",
        expected="0.1 within .02",
        program=("shares", "ceiling", "captured", "100"),
        judge=_ceiling,
    ),
    _time(
        name="long-kernel",
        asks="Kernels of 300 ms beside kernels of 1 ms, half and half.",
        expected="both go on, each with a fifth or more",
        program=("shares", "long"),
        cost_s=14,
        judge=_both_go_on,
    ),
    _time(
        name="dependent-launch",
        asks="Kernels that may begin before the one before them ends (dependent launch), alone on the card.",
        expected="at least 97 % of what they get without the library",
        program=("shares", "compared", "dependent", "100"),
        judge=_as_alone,
        only_card=True,
    ),
    _time(
        name="graphs-alone",
        asks="Graphs of ten kernels of 10 µs, launched without waiting, alone on the card.",
        expected="at least 97 % of what they get without the library",
        program=("shares", "compared", "graph", "10"),
        judge=_as_alone,
        only_card=True,
    ),
    _time(
        name="legacy-stream",
        asks="The legacy stream beside a stream that blocks it, alone on the card.",
        expected="at least 97 % of what they get without the library",
        program=("shares", "compared", "legacy", "100"),
        judge=_as_alone,
        only_card=True,
    ),
    *(
        _time(
            name=tool,
            asks=f"Does {tool} work over a program in a container?",
            expected="it ends with 0, and the program runs through",
            program=("probes", "tool", tool),
            judge=_tool,
            cost_s=25,
            only_card=True,
        )
        for tool in ("ncu", "compute-sanitizer", "cuda-gdb")
    ),
]
