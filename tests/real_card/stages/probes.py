"""Questions that need programs of ours or NVIDIA's: names, and tools on a metered program."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import Any, Final

from partage_simgpu.build import built as built_simulation
from real_card.ground import driver_past, program
from real_card.programs.answer import Absent, answer
from real_card.stages.place import a_place, told

TOOL_S: Final = 40
TOOLS: Final = {
    "ncu": ("ncu", "--clock-control", "none", "--launch-count", "3"),
    "compute-sanitizer": ("compute-sanitizer", "--tool", "memcheck"),
    "cuda-gdb": ("cuda-gdb", "-batch", "-ex", "run", "-ex", "bt", "--args"),
}


def names() -> dict[str, Any]:
    """Every name of the driver's, looked up in the library."""
    with a_place() as place:
        environment = place.container().environment
        return told(program("names", "grid", str(driver_past())), environment)


def tool(name: str) -> dict[str, Any]:
    """A tool of NVIDIA's on a program in a container; for this many seconds, then it is ended."""
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
    sys.exit(answer({"names": names, "tool": tool}))
