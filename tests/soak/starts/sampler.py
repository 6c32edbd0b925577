"""Looks again and again at what the runtime's containers were given, straight at the runtime."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from partage_base.cri import CriError, RuntimeClient, UnaryClient
from soak.starts.books import given, too_much

EVERY_S: Final = 0.05


@dataclass
class Samples:
    taken: int = 0
    most_milli: int = 0
    """Of all cards together, in one sample."""
    wrong: list[str] = field(default_factory=list[str])


@contextmanager
def sampling(runtime: Path, memory_of: Mapping[str, int]) -> Generator[Samples]:
    samples, enough = Samples(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_sample(runtime, memory_of, samples, enough)))
    thread.start()
    try:
        yield samples
    finally:
        enough.set()
        thread.join()


async def _sample(runtime: Path, memory_of: Mapping[str, int], samples: Samples, enough: threading.Event) -> None:
    """A runtime that was killed has no list; the containers that it left are in its next one."""
    peer = UnaryClient(runtime)
    try:
        while not enough.is_set():
            try:
                listed = await RuntimeClient(peer).containers()
            except CriError:
                continue
            finally:
                await asyncio.sleep(EVERY_S)
            sums = given(each.annotations for each in listed if not each.exited)
            samples.taken += 1
            samples.most_milli = max(samples.most_milli, sum(sums.milli.values()))
            samples.wrong += too_much(sums, memory_of)
    finally:
        peer.close()
