"""Time that partage-oci adds to the calls of an engine's shim, for a container without a request.

Both ways call the same runc, with the same bundle, in turns; the guard is on, as if partage-oci were the default
runtime. The time of a container with a share is not measured here: it needs the agent.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.harness import Bench
from rig.client import wait
from rig.programs import ensure
from support.oci_program import NAME, built

TURNS, SMOKE_TURNS = 300, 2
WARM_UP: Final = 3
MOST_ADDED_MS: Final = {"create": 3.0, "exec": 1.0, "state": 1.0, "kill": 1.0}
WAYS: Final = ("runc", NAME)
BUSYBOX: Final = "/bin/busybox"


class Calls:
    """Runs the life cycle of one container by each way, and times each call in milliseconds."""

    def __init__(self, folder: Path) -> None:
        runc = ensure("runc")["runc"]
        ours = Path(shutil.copy(built(), folder))
        ours.with_name(f"{NAME}.conf").write_text(f"runtime {runc}\nguard yes\nsocket {folder}/none\nagent_wait_ms 0\n")
        self._programs: Mapping[str, Path] = {"runc": runc, NAME: ours}
        self._folder = folder
        self._bundle = folder / "bundle"
        _make_bundle(runc, self._bundle)

    def life(self, way: str, number: int) -> dict[str, float]:
        name = f"bench-{number}"
        try:
            return self._life(way, name)
        finally:
            self._call("runc", "delete", "--force", name)  # left by an interrupted run; otherwise there is none

    def _life(self, way: str, name: str) -> dict[str, float]:
        took = {
            "create": self._timed(way, "create", "--bundle", str(self._bundle), name),
            "start": self._timed(way, "start", name),
            "exec": self._timed(way, "exec", name, BUSYBOX, "true"),
            "state": self._timed(way, "state", name),
            "kill": self._timed(way, "kill", name, "KILL"),
        }
        wait.found("the container's end", lambda: self._status(name) == "stopped" or None)
        return took | {"delete": self._timed(way, "delete", name)}

    def is_ours(self) -> bool:
        """Whether the program called partage-oci looks for our annotations."""
        asking = self._folder / "asking"
        asking.mkdir()
        (asking / "config.json").write_text('{"annotations":{"partage.dev/gpu-milli":"1"}}')
        done = self._call(NAME, "create", "--bundle", str(asking), "asking")
        return done.stderr.startswith(b"partage: no agent answers")

    def _timed(self, way: str, *words: str) -> float:
        argv = self._argv(way, words)
        began = time.perf_counter_ns()
        # A container inherits the descriptors of its `create`, so that a pipe would not end.
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        took = (time.perf_counter_ns() - began) / 1e6
        if done.returncode:
            raise AssertionError(f"{' '.join(argv)} ended with {done.returncode}")
        return took

    def _status(self, name: str) -> str:
        state: dict[str, Any] = json.loads(self._call("runc", "state", name).stdout)
        return str(state["status"])

    def _call(self, way: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self._argv(way, words), capture_output=True, check=False)

    def _argv(self, way: str, words: tuple[str, ...]) -> list[str]:
        flags = ("--root", f"{self._folder}/state", "--log", f"{self._folder}/log.json", "--log-format", "json")
        return [str(self._programs[way]), *flags, *words]


def _make_bundle(runc: Path, folder: Path) -> None:
    """Creates a bundle of a static busybox that sleeps, with runc's default configuration."""
    program = folder / f"rootfs{BUSYBOX}"
    program.parent.mkdir(parents=True)
    shutil.copy(ensure("busybox")["busybox"], program)
    subprocess.run([runc, "spec"], cwd=folder, check=True)
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    config["process"] |= {"terminal": False, "args": [BUSYBOX, "sleep", "100000"], "rlimits": []}
    (folder / "config.json").write_text(json.dumps(config))


def main() -> int:
    bench = Bench.from_argv("oci")
    with tempfile.TemporaryDirectory() as folder:
        calls = Calls(Path(folder))
        bench.engaged("partage-oci is called", calls.is_ours())
        measure(bench, calls, SMOKE_TURNS if bench.smoke else TURNS)
    return bench.finish()


def measure(bench: Bench, calls: Calls, turns: int) -> None:
    took = defaultdict[str, dict[str, list[float]]](lambda: {way: [] for way in WAYS})
    for turn in range(turns + WARM_UP):
        for way in WAYS if turn % 2 else WAYS[::-1]:
            life = calls.life(way, turn)
            for verb, ms in life.items() if turn >= WARM_UP else ():
                took[verb][way].append(ms)
    for verb, ways in took.items():
        for way in WAYS:
            bench.samples(f"{way} {verb}", [ms * 1e6 for ms in ways[way]])
    for verb, most in MOST_ADDED_MS.items():
        theirs, ours = (took[verb][way] for way in WAYS)
        added = statistics.median(one - other for one, other in zip(ours, theirs, strict=True))
        bench.bar(f"{verb}, beyond runc", added, at_most=most, unit="ms")


if __name__ == "__main__":
    sys.exit(main())
