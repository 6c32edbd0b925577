"""The proxy as a process, with an admission that passes everything: `serve.py UPSTREAM.sock OWN.sock`.

It replaces any server at its own path. On SIGTERM it drains and prints its counts, so that its parent knows what passed
through it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Final

import uvloop

from partage_crishim.decisions import Decision, InterceptedCall, Pass
from partage_crishim.proxy import ProxyServer

DRAIN_WITHIN_S: Final = 10.0


async def passing(_: InterceptedCall) -> Decision:
    return Pass()


def take_place(listening: socket.socket, own: str) -> None:
    """Replaces the socket without a moment in which nothing serves this path."""
    beside = f"{own}.{os.getpid()}"
    listening.bind(beside)
    listening.listen(128)
    Path(beside).rename(own)


async def main(upstream: str, own: str) -> None:
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    with socket.socket(socket.AF_UNIX) as listening:
        take_place(listening, own)
        proxy = ProxyServer(upstream, passing)
        proxy.serve(listening)
        await asked.wait()
        await proxy.drain(DRAIN_WITHIN_S)
    sys.stdout.write(json.dumps({"calls": proxy.counters.calls.total(), "broken": proxy.counters.broken}))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
