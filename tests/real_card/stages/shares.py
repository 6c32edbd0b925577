"""Questions about time: floods' parts of a card, and their effect on others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from subprocess import PIPE
from typing import Any, Final

from partage_simgpu.build import built as built_workloads
from real_card.ground import program, user_environment
from real_card.programs.answer import Absent, answer
from real_card.row import ABSENT
from real_card.stages.floods import Flood, bare_flood, flooding, parts_of_time
from real_card.stages.place import Place, a_place, told

SECONDS: Final = 4.0
ALONE_S: Final = 2.0
REQUESTS_S: Final = 6
TRAINED_S: Final = 8
TURNS: Final = 3


def _two(first: Flood, second: Flood, seconds: float = SECONDS, **settings: str) -> dict[str, Any]:
    with a_place(**settings) as place, flooding(place, first, second) as floods:
        parts = parts_of_time(floods, seconds)
        account = [round(each.container.got, 4) if each.container else 0.0 for each in floods]
        return {"parts": parts, "sum": round(sum(parts), 4), "account": account, "findings": list(place.findings)}


def shares(share: str, kernel_us: str, how: str = "queue", blocking: str = "") -> dict[str, Any]:
    """Two containers with `share` and the rest of 1000; both want all the time."""
    environment = (("CUDA_LAUNCH_BLOCKING", "1"),) if blocking else ()
    mine = int(share)
    floods = [Flood(each, float(kernel_us), how, environment=environment) for each in (mine, 1000 - mine)]
    with bare_flood(Flood(1000, float(kernel_us), how)) as running:
        (alone,) = parts_of_time([running], ALONE_S)
    return {"alone": alone, **_two(floods[0], floods[1])}


def unmetered(share: str, kernel_us: str) -> dict[str, Any]:
    """The control: the same without metering, which must not give these shares."""
    mine, us = int(share), float(kernel_us)
    return _two(Flood(mine, us), Flood(1000 - mine, us), policy="free-run")


def ceiling(how: str, limit: str, absolute: str = "") -> dict[str, Any]:
    """One flood with a limit, by a way that might bypass the meter."""
    milli = int(limit)
    flood = Flood(milli, 1000, how, limit=milli, absolute=bool(absolute))
    with a_place() as place, flooding(place, flood) as floods:
        (part,) = parts_of_time(floods, SECONDS)
        return {"part": part, "account": round(floods[0].container.got if floods[0].container else 0.0, 4)}


def compared(how: str, kernel_us: str) -> dict[str, Any]:
    """A lone flood's part of the card: bare, and in a container with all of its time."""
    flood = Flood(1000, float(kernel_us), how)
    with bare_flood(flood) as running:
        (bare,) = parts_of_time([running], ALONE_S)
    with a_place() as place, flooding(place, flood) as floods:
        (part,) = parts_of_time(floods, ALONE_S)
    return {"bare": bare, "contained": part}


def inference(share: str, flood_us: str, framework: str = "") -> dict[str, Any]:
    """Requests at a rate: their latencies alone in a container, and beside a flood. Ours are kernels of 6 ms."""
    mine = int(share)
    argv = [str(built_workloads() / "inference"), "--seconds", str(REQUESTS_S)]
    if framework:
        argv = program("frameworks", f"{framework}-requests", str(REQUESTS_S))
    with a_place() as place:
        alone = _requests(place, mine, argv)
        if "absent" in alone:
            return alone
        with flooding(place, Flood(1000 - mine, float(flood_us))) as floods:
            beside = _requests(place, mine, argv)
            floods[0].lines()
    return {"alone": alone, "beside": beside}


def _requests(place: Place, share: int, argv: Sequence[str]) -> dict[str, Any]:
    container = place.container(memory=place.memory // 4, share=share)
    found = told(argv, container.environment)
    return found if "absent" in found else {name: round(found[name], 2) for name in ("p50_ms", "p99_ms")}


def trainings(share: str) -> dict[str, Any]:
    """Two containers train at once; each one's steps as a part of those of one alone."""
    mine = int(share)
    with a_place() as place, ExitStack() as stack:
        both = [stack.enter_context(_training(_trains_in(place, each))) for each in (mine, 1000 - mine)]
        (whole,) = _steps(both[:1], ALONE_S)
        parts = [round(each / whole, 4) for each in _steps(both, TRAINED_S)]
        return {"alone": whole, "parts": parts, "findings": list(place.findings)}


def trained() -> dict[str, Any]:
    """Steps of a training in turns: bare, in a container, in an unmetered one. Waiting trainings have no work."""
    with a_place() as place, a_place(policy="free-run") as unmetered, ExitStack() as stack:
        environments = user_environment(), _trains_in(place, 1000), _trains_in(unmetered, 1000)
        bare, contained, free = (stack.enter_context(_training(each)) for each in environments)
        found = [[_steps([each], ALONE_S)[0] for each in (bare, contained, free)] for _ in range(TURNS)]
    return dict(zip(("bare", "contained", "unmetered"), map(list, zip(*found, strict=True)), strict=True))


def _trains_in(place: Place, share: int) -> Mapping[str, str]:
    return place.container(memory=place.memory // 2, share=share).environment


@contextmanager
def _training(environment: Mapping[str, str]) -> Generator[subprocess.Popen[str]]:
    """A training that is ready, or the reason why there is none."""
    argv = program("frameworks", "torch-speed")
    with subprocess.Popen(argv, env=environment, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout
        try:
            if (line := process.stdout.readline()) == "\n":
                raise Absent(json.loads(process.stdout.readline())[ABSENT])
            if not line:
                raise RuntimeError(f"a training ended with {process.wait()}")
            yield process
        finally:
            process.kill()


def _steps(trainings: Sequence[subprocess.Popen[str]], seconds: float) -> list[float]:
    """Steps a second of each, all at once."""
    pipes = [(each.stdin, each.stdout) for each in trainings if each.stdin and each.stdout]
    for to, _ in pipes:
        to.write(f"{seconds}\n")
        to.flush()
    return [float(said.readline()) for _, said in pipes]


def long_kernel() -> dict[str, Any]:
    """Kernels of 300 ms beside others of 1 ms, half and half: whether both make progress."""
    return _two(Flood(500, 300_000), Flood(500, 1000), 8.0)


QUESTIONS: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    "shares": shares,
    "unmetered": unmetered,
    "ceiling": ceiling,
    "compared": compared,
    "inference": inference,
    "trainings": trainings,
    "trained": trained,
    "long": long_kernel,
}

if __name__ == "__main__":
    sys.exit(answer(QUESTIONS))
