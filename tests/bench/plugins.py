"""What calling plugins costs: the façade over bare functions, and a node plugin behind its process border.

The bars of the scheduler's side are differences to calling the same functions directly, in the same run.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from bench.harness import Bench
from partage_plugins import hookimpl
from partage_plugins.answers import Fits
from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.sides.scheduler import SchedulerSide
from partage_plugins.vocabulary import NodeName
from support.sides import container, granted_raw, request, scheduler_side

NODES: Final = 64  # as many as the core asks for at once when few have changed
MANY: Final = 5000
HOOKS: Final = ("partage_shape", "partage_fits", "partage_scores")
FITS: Final = Fits(np.ones(NODES, np.bool_), np.zeros(NODES, np.uint8), ("no",))
SCORES: Final = np.ones(NODES, np.float32)
SLOTS: Final = np.arange(NODES, dtype=np.int32)
REQUEST: Final = request()


class Answering:
    """Answers at once, so that only the calling is measured."""

    @hookimpl
    def partage_shape(self, request: object) -> int:
        return 1

    @hookimpl
    def partage_fits(self, request: object, slots: object) -> Fits:
        return FITS

    @hookimpl
    def partage_scores(self, request: object, slots: object) -> Any:
        return SCORES


class Counting:
    """Counts how often it is asked, for however many nodes."""

    calls = 0

    @hookimpl
    def partage_fits(self, request: object, slots: Any) -> Fits:
        Counting.calls += 1
        return Fits(np.ones(slots.shape, np.bool_), np.zeros(slots.shape, np.uint8), ())


def bare(hook: str, plugins: int) -> Callable[[], object]:
    functions = [getattr(Answering(), hook) for _ in range(plugins)]
    arguments = (REQUEST,) if hook == "partage_shape" else (REQUEST, SLOTS)

    def call() -> object:
        return [function(*arguments) for function in functions]

    return call


def through(side: SchedulerSide, hook: str) -> Callable[[], object]:
    call = getattr(side, hook.removeprefix("partage_"))
    return partial(call, REQUEST) if hook == "partage_shape" else partial(call, REQUEST, SLOTS)


def measure_facade(bench: Bench, plugins: int, at_most_us: float) -> None:
    """Each hook through the façade over the bare functions."""
    side = scheduler_side(**{f"p{number}": Answering for number in range(plugins)})
    for hook in HOOKS:
        name = f"{hook}, {plugins} {'plugin' if plugins == 1 else 'plugins'}"
        candidate = through(side, hook)
        before = side.activity.serial
        candidate()
        bench.engaged(f"{name}: each plugin is called", side.activity.serial - before == plugins)
        difference = bench.compare(f"{name}, over bare calls", reference=bare(hook, plugins), candidate=candidate)
        bench.bar(name, difference.median_us, at_most=at_most_us, unit="us")


def check_batches(bench: Bench) -> None:
    """A batch hook is called once for each decision, however many nodes there are."""
    side = scheduler_side(counting=Counting)
    verdict = side.fits(REQUEST, np.arange(MANY, dtype=np.int32))
    bench.engaged("the verdict speaks of all nodes", verdict.fits.shape == (MANY,))
    calls = bench.figure(f"calls of partage_fits for {MANY} nodes", Counting.calls)
    bench.bar("calls of a batch hook for each decision", calls, at_most=1, unit="calls")


def measure_host(bench: Bench, root: str) -> None:
    """A node-side call through the child process and back."""
    host = PluginHost(HostSettings(node=NodeName("n1"), root=root, paths={"it": "support.host_plugins:Obedient"}))
    asked, given = container(), granted_raw("t0")
    adjusted = bench.run(host.adjust(asked, given))
    bench.engaged("another process answers", int(adjusted.adjustment.env["PID"]) != os.getpid())
    timing = bench.time_async("partage_adjust through the host", lambda: host.adjust(asked, given))
    bench.bar("partage_adjust through the host", timing.median_us, at_most=300, unit="us")
    bench.run(host.stop())


def main() -> int:
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the child imports this benchmark's plugin
    bench = Bench.from_argv("plugins", libraries=["pluggy", "msgspec", "numpy"])
    measure_facade(bench, 1, at_most_us=2)
    measure_facade(bench, 5, at_most_us=5)
    check_batches(bench)
    with tempfile.TemporaryDirectory() as root:
        measure_host(bench, root)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
