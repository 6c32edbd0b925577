"""The harness of every benchmark `tests/bench/NAME.py`.

    from bench.harness import Bench

    bench = Bench.from_argv("codecs", libraries=["msgspec"])
    decoding = bench.time("inventory of 8 cards", lambda: decode(raw))
    bench.bar("an inventory decodes", decoding.median_us, at_most=20, unit="us")
    raise SystemExit(bench.finish())

It prints a table for people and, as the last line of stdout, one JSON object. Exit status: 0 when every bar holds, 3
when one does not, 1 when the measured feature was not active. With `--smoke` everything runs briefly and nothing is
judged.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from typing import Any, Final, Self, TypeVar

from bench.measuring.bars import Bar, holds, limit_of
from bench.measuring.rounds import (
    FULL,
    SMOKE,
    Clock,
    Difference,
    Spread,
    Timing,
    as_timing,
    compare_rounds,
    stretch_of,
    time_rounds,
)
from bench.measuring.surroundings import surroundings, time_now
from bench.measuring.table import report

EXIT_HOLDS: Final = 0
EXIT_BROKEN: Final = 3
STOLEN: Final = 0.02
"""With more processor time stolen than this, a time depends more on the neighbours than on us."""

T = TypeVar("T")
S = TypeVar("S", bound=Spread)


class Bench:
    """One run of one benchmark: measures, collects, and reports."""

    def __init__(
        self, name: str, *, libraries: Sequence[str] = (), smoke: bool = False, clock: Clock = time.perf_counter_ns
    ) -> None:
        self.name = name
        self.smoke = smoke
        self._clock = clock
        self._plan = SMOKE if smoke else FULL
        self._runner = asyncio.Runner()
        self._spreads: dict[str, Spread] = {}
        self._figures: dict[str, float] = {}
        self._bars: list[Bar] = []
        self._surroundings = surroundings(libraries)
        self._before = time_now()

    @classmethod
    def from_argv(cls, name: str, *, libraries: Sequence[str] = (), argv: Sequence[str] | None = None) -> Self:
        parser = argparse.ArgumentParser(prog=f"bench {name}", description=f"measures {name}")
        parser.add_argument("--smoke", action="store_true", help="run everything briefly and judge nothing")
        return cls(name, libraries=libraries, smoke=parser.parse_args(argv).smoke)

    def time(self, name: str, call: Callable[[], object]) -> Timing:
        return self._keep(name, time_rounds(stretch_of(call, self._clock), self._plan))

    def compare(self, name: str, *, reference: Callable[[], object], candidate: Callable[[], object]) -> Difference:
        sides = stretch_of(reference, self._clock), stretch_of(candidate, self._clock)
        return self._keep(name, compare_rounds(*sides, self._plan))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop of this run, such as one that starts a server."""
        return self._runner.run(coroutine)

    def samples(self, name: str, calls_ns: Sequence[float]) -> Timing:
        """Adds times of single calls that were measured elsewhere."""
        return self._keep(name, as_timing(calls_ns))

    def figure(self, name: str, value: float) -> float:
        """Adds a figure other than a time, with its unit in its name: `resident_mib`."""
        self._figures[name] = value
        return value

    def engaged(self, name: str, condition: object) -> None:
        """Ends the run unless the measured feature is active: otherwise a figure would mean nothing."""
        if not condition:
            raise SystemExit(f"bench {self.name}: {name}: not engaged, so there is nothing to measure")

    def bar(
        self, name: str, figure: float, *, at_most: float | None = None, at_least: float | None = None, unit: str
    ) -> None:
        """Compares the figure with one bar, `at_most` or `at_least`."""
        sense, bar = limit_of(at_most, at_least)
        self._bars.append(Bar(name, figure, sense, bar, unit, None if self.smoke else holds(figure, sense, bar)))

    def finish(self) -> int:
        """Prints the table and the JSON line; returns the exit status."""
        self._runner.close()
        stolen = time_now().stolen_since(self._before)
        self._surroundings["stolen"] = round(stolen, 3)
        if stolen > STOLEN:
            sys.stderr.write(
                f"bench {self.name}: other machines took {stolen:.0%} of the processors: times are too long\n"
            )
        for text in (report(self._spreads, self._figures, self._bars), "", json.dumps(self._result(), allow_nan=False)):
            sys.stdout.write(text + "\n")
        return EXIT_BROKEN if any(bar.holds is False for bar in self._bars) else EXIT_HOLDS

    def _result(self) -> dict[str, object]:
        return {
            "bench": self.name,
            "smoke": self.smoke,
            "figures": {name: asdict(spread) for name, spread in self._spreads.items()} | self._figures,
            "bars": [asdict(bar) for bar in self._bars],
            "environment": self._surroundings,
        }

    def _keep(self, name: str, result: S) -> S:
        if name in self._spreads:
            raise ValueError(f"bench {self.name}: two measurements are named {name!r}")
        self._spreads[name] = result
        return result
