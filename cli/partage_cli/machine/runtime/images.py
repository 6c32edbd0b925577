"""Images come into the runtime's store: fetched from a registry, with what was fetched so far, or loaded from archives.

What is being fetched is read where containerd puts it, in its content store: a folder for each part, with the bytes so
far and how many there shall be. Two pulls at once see both. An archive is loaded by containerd's own program.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from partage_base.cri.errors import PeerRefused
from partage_cli.machine.places import CONTAINERD_ROOT
from partage_cli.machine.runtime.archives import ImageAway, read_contents
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.runtime.names import whole_name

_INGEST: Final = "io.containerd.content.v1.content/ingest"
_LOOKED_S: Final = 0.2
_MOST_WORDS: Final = 400
_NOT_FOUND: Final = 5
_KNOWN_S: Final = 10.0


class Download(Struct, frozen=True):
    """Something that is being fetched."""

    ref: str
    done_bytes: int
    total_bytes: int


class Tally:
    """How much was fetched of how much, over parts that come and go. Pure."""

    def __init__(self) -> None:
        self._parts: dict[str, Download] = {}

    def seen(self, parts: tuple[Download, ...]) -> tuple[int, int]:
        """A part that is no longer there is done."""
        there = {part.ref for part in parts}
        self._parts.update({part.ref: part for part in parts})
        done = sum(part.done_bytes if part.ref in there else part.total_bytes for part in self._parts.values())
        return done, sum(part.total_bytes for part in self._parts.values())


async def pull(
    runtime: MachineRuntime, image: str, *, root: Path, tell: Callable[[int, int], None] | None = None
) -> str:
    """The image's id; `tell` hears the bytes that were fetched and that are known of. Raises `ImageAway`."""
    name = whole_name(image)
    telling = asyncio.create_task(_tell(root, tell)) if tell is not None else None
    try:
        return await runtime.pull(image)
    except PeerRefused as refused:
        words = " ".join(refused.words.split())[:_MOST_WORDS]
        if refused.status == _NOT_FOUND:
            raise ImageAway(f"image {name}: its registry has none of this name ({words}): check name and tag") from None
        raise ImageAway(f"image {name}: {words}; `partage load` takes an archive instead") from None
    finally:
        if telling is not None:
            telling.cancel()


async def load(runtime: MachineRuntime, path: Path, *, ctr: Path, socket: Path) -> tuple[str, ...]:
    """The names of the images in an archive of `docker save`, or an OCI layout, archived or a folder.

    Returns when the runtime knows them. Raises `ImageAway`.
    """
    contents = await asyncio.to_thread(read_contents, path)
    base = ("--base-name", contents.base_name) if contents.base_name else ()
    importing = (str(ctr), "--address", str(socket), "--namespace", "k8s.io", "images", "import", *base)
    if path.is_dir():  # noqa: ASYNC240  one look
        words = await _piped(("tar", "-C", str(path), "-cf", "-", "."), (*importing, "-"))
    else:
        words = await _ran((*importing, str(path)))
    if words is not None:
        raise ImageAway(f"{path}: containerd could not load it: {words}")
    await _known(runtime, contents.names)
    return contents.names


async def _ran(argv: tuple[str, ...], stdin: int | None = None) -> str | None:
    """None, or what it said when it failed, in one line."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else stdin,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    try:
        _, said = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise
    if process.returncode == 0:
        return None
    return " ".join(said.decode(errors="replace").split())[-_MOST_WORDS:] or f"exit code {process.returncode}"


async def _piped(first: tuple[str, ...], second: tuple[str, ...]) -> str | None:
    reading, writing = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(*first, stdout=writing, stderr=asyncio.subprocess.DEVNULL)
        os.close(writing)
        writing = -1
        said = await _ran(second, reading)
        return said or (None if await process.wait() == 0 else f"{first[0]} failed")
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


async def _known(runtime: MachineRuntime, names: tuple[str, ...]) -> None:
    """The runtime hears of images that others put into its store a moment later."""
    try:
        async with asyncio.timeout(_KNOWN_S):
            for name in names:
                while await runtime.image(name) is None:  # noqa: ASYNC110  the interface has no event for it
                    await asyncio.sleep(_LOOKED_S / 4)
    except TimeoutError:
        raise ImageAway(f"{', '.join(names)}: loaded, but the runtime does not know of it") from None


async def _tell(root: Path, tell: Callable[[int, int], None]) -> None:
    tally = Tally()
    while True:
        done, total = tally.seen(await asyncio.to_thread(downloads, root))
        if total:
            tell(done, total)
        await asyncio.sleep(_LOOKED_S)


def downloads(root: Path) -> tuple[Download, ...]:
    """Those that are there now; a folder that goes while it is read is done."""
    ingest = root / CONTAINERD_ROOT / _INGEST
    found: list[Download] = []
    with contextlib.suppress(OSError):
        for folder in ingest.iterdir():
            with contextlib.suppress(OSError, ValueError):
                total = int((folder / "total").read_bytes()[:20])
                ref = (folder / "ref").read_bytes()[:1024].decode(errors="replace")
                found.append(Download(ref, (folder / "data").stat().st_size, total))
    return tuple(found)
