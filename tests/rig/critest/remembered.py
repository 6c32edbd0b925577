"""A run of critest straight at the runtime, kept under a key of all that decides it: no code of ours has a part in it.

Only a run that was judged good is kept, and whoever takes one judges it again. `key_of_straight` names what decides;
a runtime of another release, another image or other code of the rig is another key.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from rig.critest.results import Run
from rig.images import Image
from rig.programs import Programs
from rig.programs.cache import cache_of

_RIG: Final = Path(__file__).parents[1]
_CODE: Final = ("critest", "errors.py", "images", "lone.py", "machine", "nodes", "registry.py")
"""What makes the images and the machine, and starts the runtime and critest."""
_PROGRAMS: Final = ("bridge", "containerd", "containerd-shim-runc-v2", "critest", "docker-registry", "iptables", "runc")
_PLUGINS: Final = ("host-local", "loopback", "portmap")
_SHORT: Final = 16


@dataclass(frozen=True)
class Remembered:
    """A run, when it was, and the files that it left."""

    run: Run
    at: str
    left: tuple[str, ...]


def key_of_straight(programs: Programs, stock: Mapping[str, Image], conditions: Mapping[str, bool], seed: int) -> str:
    """Of programs, images, the rig's own code, the kernel, what else of the machine decides, and the order."""
    kernel = os.uname()
    parts = (
        *_digests(_files_of(programs)),
        *_digests(_code()),
        *(f"{name} {_digest_of_image(image)}" for name, image in sorted(stock.items())),
        repr(sorted(conditions.items())),
        f"{kernel.release} {kernel.version} {kernel.machine}",
        str(seed),
    )
    return sha256("\n".join(parts).encode()).hexdigest()[:_SHORT]


def recalled(key: str) -> Remembered | None:
    """Nothing, too, where what is kept can't be read."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(_path(key).read_bytes(), type=Remembered)
    return None


def remember(key: str, run: Run, left: tuple[str, ...]) -> None:
    path, kept = _path(key), Remembered(run, datetime.now(UTC).isoformat(timespec="seconds"), left)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(msgspec.json.encode(kept))
    Path(file.name).rename(path)


def _path(key: str) -> Path:
    return cache_of(os.environ).root / "critest" / f"{key}.json"


def _files_of(programs: Programs) -> Iterator[Path]:
    yield from (programs[name] for name in _PROGRAMS)
    yield from (programs.cni / name for name in _PLUGINS)


def _code() -> Iterator[Path]:
    for name in _CODE:
        part = _RIG / name
        yield from sorted(path for path in part.rglob("*") if path.is_file()) if part.is_dir() else [part]


def _digests(files: Iterable[Path]) -> Iterator[str]:
    """Of names and contents; bytecode is none of them."""
    for file in files:
        if file.suffix != ".pyc":
            yield f"{file.name} {sha256(file.read_bytes()).hexdigest()}"


def _digest_of_image(image: Image) -> str:
    layers = [layer.digest for layer in image.layers]
    return sha256(repr((layers, image.settings.document())).encode()).hexdigest()
