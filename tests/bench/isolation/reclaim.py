"""How long it takes until a killed program's memory is available to the next one."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import Any, Final

from bench.isolation.place import MIB
from bench.isolation.programs import programs
from support.isolated import Contained

_SPARE_MIB: Final = 2 * 64


def returned_s(container: Contained, context_mib: int) -> float:
    """One program holds nearly all and is killed; the time from then until another has got as much."""
    most = container.limit // MIB - 2 * context_mib - _SPARE_MIB
    with program(container) as taker, program(container) as holder:
        ask(holder, f"take {most}")
        if ask(taker, f"take {most}")["result"] == 0:
            raise SystemExit("both programs got nearly all memory: nothing limits them")
        holder.send_signal(signal.SIGKILL)
        holder.wait()  # the kernel has released everything that it had
        began = time.monotonic()
        ask(taker, f"insist {most}")
        return time.monotonic() - began


def program(container: Contained) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [str(programs() / "taking")],
        env=dict(container.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it has a context
    return process


def ask(process: subprocess.Popen[str], order: str) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{order}\n")
    return dict(json.loads(process.stdout.readline()))
