"""Probes daemons as kubelets do, in a process of higher priority: the soak's own loop is often late.

    python -m soak.siege.prober '[{"name": ..., "host": ..., "port": ..., "pid": ...}]'

Each answer is one line of JSON. The probe waits longer than a kubelet does, and reports how long the daemon was
runnable without a processor meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
import time
from collections.abc import Sequence
from typing import Final

import msgspec
import uvloop

from partage_isolation.urgency import go_first
from soak.siege.ports import PROBE_EVERY_S, Answer, Port, Probe
from support import procfs

MODULE: Final = "soak.siege.prober"
_WAITS_S: Final = 30.0


async def probed(probes: Sequence[Probe]) -> None:
    """Probe until cancelled."""
    told = msgspec.json.encode([probe.port for probe in probes]).decode()
    by_name = {probe.port.name: probe for probe in probes}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", MODULE, told, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async for line in process.stdout:
            answer = msgspec.json.decode(line, type=Answer)
            by_name[answer.name].heard(answer)
        raise RuntimeError("nobody asks daemons for signs of life any more: the prober has ended")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _ask(port: Port) -> None:
    context = None
    if port.caller is not None:
        context = ssl.create_default_context(cafile=port.caller.authority)
        context.load_cert_chain(port.caller.certificate, port.caller.key)
    while True:
        began, before_s = time.monotonic(), _waited_s(port.pid)
        is_answered = await _is_alive(port, context)
        took_s, waited_s = time.monotonic() - began, max(0.0, _waited_s(port.pid) - before_s)
        answer = Answer(port.name, took_s=took_s, waited_s=waited_s, is_answered=is_answered)
        sys.stdout.write(f"{msgspec.json.encode(answer).decode()}\n")
        sys.stdout.flush()
        await asyncio.sleep(max(0.0, began + PROBE_EVERY_S - time.monotonic()))


def _waited_s(pid: int) -> float:
    try:
        return procfs.waited_s(pid)
    except (FileNotFoundError, ProcessLookupError):  # a process that has ended waits for nothing
        return 0.0


async def _is_alive(port: Port, context: ssl.SSLContext | None) -> bool:
    """Whether it answers, and, if the port needs no certificate, whether the answer is 200."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_WAITS_S):
            reader, writer = await asyncio.open_connection(port.host, port.port, ssl=context)
            try:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n")
                line = await reader.readline()
                return line.startswith(b"HTTP/1.1 ") if context else b" 200 " in line
            finally:
                writer.transport.abort()
    return False


async def _ask_all(ports: Sequence[Port]) -> None:
    await asyncio.gather(*map(_ask, ports))


if __name__ == "__main__":
    if (why := go_first(lambda: None)) is not None:
        sys.stderr.write(f"probes wait for a processor as all others do: {why}\n")
    uvloop.run(_ask_all(msgspec.json.decode(sys.argv[1], type=list[Port])))
