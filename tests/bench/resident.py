"""What crishim holds in memory, the whole daemon: after its start, after many calls of every kind, and after more.

It runs as it is installed: its byte code is there, and what only developers have beside it (structlog would bring all
of rich along) is not. The plugins' process is not counted; it has a bound of its own.
"""

from __future__ import annotations

from typing import Final

from bench.harness import Bench
from bench.splicing.places import Caller
from bench.splicing.programs import build
from rig.lone import LoneRuntime, lone_runtime
from rig.machine.components import Component
from support.crishim import SOCKET, crishim, figures, in_front
from support.procfs import status

CALLS: Final = 100_000
SMOKE_CALLS: Final = 2_000
AT_ONCE: Final = 16
MOST_MIB: Final = 45
MOST_GROWTH_MIB: Final = 1
"""What an allocator may do without anything being kept."""
_KIB: Final = 1 << 10
_FOR_DEVELOPERS: Final = "import sys\nsys.modules.update(dict.fromkeys(('rich', 'pygments')))\n"


def resident_mib(component: Component) -> float:
    return status(component.pid, "VmRSS") / _KIB


def as_installed(runtime: LoneRuntime) -> dict[str, str]:
    """Where its byte code is kept, and what it does not find."""
    folder = runtime.scratch / "installed"
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(_FOR_DEVELOPERS)
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "cache")}
    return {"PYTHONPATH": str(folder), **kept}


def main() -> int:
    """One crishim, asked for its figures as a scraper would between the calls."""
    bench = Bench.from_argv("resident", libraries=["uvloop", "cryptography", "protobuf", "structlog"])
    client, calls = build() / "client", SMOKE_CALLS if bench.smoke else CALLS
    with lone_runtime({}, say=lambda _: None) as runtime:
        daemon = crishim(env=as_installed(runtime))
        with in_front(runtime.machine, daemon) as component:
            component.restart()  # the first start has written its byte code
            caller = Caller(client, {"crishim": runtime.machine.path(SOCKET)})
            seen, counted = [resident_mib(component)], figures(runtime.machine)
            for _ in range(2):
                caller.call(method="mixed", in_flight=AT_ONCE, rounds=1, calls=calls)
                counted = figures(runtime.machine)
                seen.append(resident_mib(component))
    went_through = sum(count for series, count in counted.items() if series.startswith("partage_crishim_calls_total"))
    bench.engaged("all calls went through crishim", went_through >= 2 * calls)
    bench.figure("resident after the start, MiB", seen[0])
    bench.bar(f"resident after {calls} calls", seen[1], at_most=MOST_MIB, unit="MiB")
    bench.bar("growth over as many again", seen[2] - seen[1], at_most=MOST_GROWTH_MIB, unit="MiB")
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
