"""The machine's images: which there are, fetched with a word on how far that has come, loaded from archives."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.manager.server import Say
from partage_cli.machine.runtime import images
from partage_cli.machine.runtime.archives import ImageAway
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.runtime.names import whole_name
from partage_cli.machine.wire.messages import Image, Progress

T = TypeVar("T")


class Store:
    def __init__(self, runtime: MachineRuntime, *, root: Path, ctr: str, containerd: Path) -> None:
        self._runtime, self._root, self._ctr, self._containerd = runtime, root, ctr, containerd

    async def has(self, image: str) -> bool:
        return await self._runtime.image(image) is not None

    async def pull(self, image: str, say: Say) -> None:
        """Raises `Objection` where it can't be had."""
        await say(Progress(step="pull", text=image))
        heard: asyncio.Queue[Progress] = asyncio.Queue()

        def tell(done: int, total: int) -> None:
            heard.put_nowait(Progress(step="pull", text=image, done_bytes=done, total_bytes=total))

        saying = asyncio.create_task(_say_all(heard, say))
        try:
            await _objecting(images.pull(self._runtime, image, root=self._root, tell=tell))
        finally:
            saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)

    async def load(self, path: Path, say: Say) -> tuple[Image, ...]:
        """What it brought; raises `Objection`."""
        ctr = shutil.which(self._ctr)
        if ctr is None:
            raise Objection("image", f"{self._ctr} is not there, containerd's program that loads images; set `ctr`")
        await say(Progress(step="load", text=str(path)))
        names = await _objecting(images.load(self._runtime, path, ctr=Path(ctr), socket=self._containerd))
        return await self.named(names)

    async def named(self, names: Sequence[str]) -> tuple[Image, ...]:
        """Those that have one of these names, or ids, with those names alone."""
        wanted = frozenset(map(whole_name, names))
        found = ((each, tuple(name for name in each.names if name in wanted)) for each in await self.all())
        return tuple(replace(each, names=known) for each, known in found if known or each.id in wanted)

    async def all(self) -> tuple[Image, ...]:
        found = await self._runtime.images()
        return tuple(Image(id=each.id, names=each.names, bytes=each.bytes) for each in found)


async def _objecting(work: Awaitable[T]) -> T:
    try:
        return await work
    except ImageAway as error:
        raise Objection("image", str(error)) from None


async def _say_all(heard: asyncio.Queue[Progress], say: Say) -> None:
    """The newest only: one that reads slowly has no use for the others."""
    while True:
        progress = await heard.get()
        while not heard.empty():
            progress = heard.get_nowait()
        await say(progress)
