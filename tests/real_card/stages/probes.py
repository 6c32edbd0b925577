"""Questions that take programs of ours or NVIDIA's: names, conformance, and tools over a metered program."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import Any, Final

from partage_simgpu.build import built as built_simulation
from partage_simgpu.comparison import compare, read_facts, read_listed
from real_card.ground import ROOT, driver_past, program, user_environment
from real_card.programs.answer import Absent, answer
from real_card.stages.place import a_place, told

CONFORMANCE: Final = ROOT / "simgpu/native/conformance"
TOOL_S: Final = 60
TOOLS: Final = {
    "ncu": ("ncu", "--clock-control", "none", "--launch-count", "3"),
    "compute-sanitizer": ("compute-sanitizer", "--tool", "memcheck"),
    "cuda-gdb": ("cuda-gdb", "-batch", "-ex", "run", "-ex", "bt", "--args"),
}


def names() -> dict[str, Any]:
    """Every name of the driver's, asked through the library."""
    with a_place() as place:
        environment = place.container().environment
        return told(program("names", "grid", str(driver_past())), environment)


def conformance(*areas: str) -> dict[str, Any]:
    argv = [str(built_simulation() / "conformance"), *areas]
    done = subprocess.run(argv, env=user_environment(), capture_output=True, text=True, check=True)
    facts = read_facts(done.stdout, "conformance")
    recorded = read_facts((CONFORMANCE / "expected/documented.txt").read_text(), "documented.txt")
    listed = read_listed((CONFORMANCE / "differences.toml").read_text(), "differences.toml")
    differences = [one.fact for one in compare(facts, recorded, listed).differences if one.reason is None]
    bad = [fact for fact, value in facts.items() if fact.endswith(".outcome") and value.startswith(("crash", "hang"))]
    return {"asked": len(facts), "differences": differences, "crashed_or_hung": bad, "told": facts}


def tool(name: str) -> dict[str, Any]:
    """A tool of NVIDIA's over a program in a container; for so many seconds, then it is ended."""
    path = shutil.which(name)
    if path is None:
        raise Absent(f"{name} is not installed")
    with a_place() as place:
        container = place.container()
        target = [str(built_simulation() / "launch-wait"), "--count", "200"]
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [path, *TOOLS[name][1:], *target],
                env=container.environment,
                capture_output=True,
                text=True,
                timeout=TOOL_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"ended": "not within its time", "seconds": TOOL_S, "findings": list(place.findings)}
        return {
            "ended": done.returncode,
            "ran": '"launches":200' in done.stdout,
            "seconds": round(time.monotonic() - begun, 1),
            "said": (done.stdout + done.stderr)[-400:],
            "findings": list(place.findings),
        }


if __name__ == "__main__":
    sys.exit(answer({"names": names, "conformance": conformance, "tool": tool}))
