"""Runs as a separate process: forwards requests from standard input to simgpud, and replies to standard output.

`relay.py ROOT`. One line a request, in hexadecimal; the process itself executes `fork`, `exec` and `hang up`. Its first
line is its own pid in its pid namespace.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from simgpu.daemon.wire import Caller


def main() -> None:
    caller = Caller(Path(sys.argv[1]))
    print(os.getpid(), flush=True)  # noqa: T201 - the protocol of this program
    for line in sys.stdin:
        match line.strip():
            case "fork":
                print(_forked(), flush=True)  # noqa: T201
            case "exec":
                os.execv(sys.executable, [sys.executable, "-c", "print('new', flush=True); input()"])  # noqa: S606
            case "hang up":
                caller.hang_up()
                print("done", flush=True)  # noqa: T201
            case packet:
                reply = caller.exchange(bytes.fromhex(packet))
                print(f"{reply.result:d} {reply.row} {reply.id} {reply.size} {reply.pid} {reply.count}", end=" ")  # noqa: T201
                print(reply.token.hex(), reply.rest.hex(), flush=True)  # noqa: T201


def _forked() -> int:
    """A child that inherits everything, and only exists."""
    child = os.fork()
    if child == 0:
        os.close(0)
        os.close(1)
        while True:
            time.sleep(3600)
    return child


if __name__ == "__main__":
    main()
