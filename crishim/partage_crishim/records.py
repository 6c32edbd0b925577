"""State that outlives the process: containers that still need cleanup, and the newest allocation seen of each pod.

`containers/<key>`: a container that plugins were asked to adjust. It stays until they were notified of its removal.
`pods/<uid>`: the newest allocation that was acted on for a pod. It stays until the runtime has no sandbox of the pod,
so an older one is refused even after every container of the newer one is removed. `regrants/<uid>`: what counts for a
pod that was resized, with the same lifetime. All are below /run and end with the node's boot; the runtime's list
outlives them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import write_whole
from partage_crishim.rules.regrants import Regrant, Regrants
from partage_plugins.api import ContainerKey

_REGRANT: Final = msgspec.json.Decoder(Regrant)


class Records:
    def __init__(self, folder: Path) -> None:
        self._containers, self._pods = str(folder / "containers"), str(folder / "pods")
        self._regrants = str(folder / "regrants")

    def adjusting(self, key: ContainerKey) -> None:
        """Record that plugins are about to be called."""
        with contextlib.suppress(FileNotFoundError):
            _touched(f"{self._containers}/{key}")
            return
        _make(self._containers)
        _touched(f"{self._containers}/{key}")

    def adjusted(self) -> tuple[ContainerKey, ...]:
        """All containers that plugins may have prepared something for."""
        return tuple(map(ContainerKey, _names_in(self._containers)))

    def removed(self, key: ContainerKey) -> None:
        """Record that plugins were notified of the removal."""
        Path(self._containers, key).unlink(missing_ok=True)

    def floor(self, uid: str) -> int:
        """The newest allocation seen of a pod; 0 for none. `uid` must be one that an allocation may name."""
        try:
            with open(f"{self._pods}/{uid}", "rb", buffering=0) as file:  # noqa: PTH123  see `write_whole`
                return int(file.read())
        except (FileNotFoundError, ValueError):
            return 0

    def raise_floor(self, uid: str, gen: int) -> None:
        """Record that an allocation newer than the floor is acted on."""
        path, content = f"{self._pods}/{uid}", str(gen).encode()
        with contextlib.suppress(FileNotFoundError):
            write_whole(path, content)
            return
        _make(self._pods)
        write_whole(path, content)

    def pods(self) -> tuple[str, ...]:
        """All pods with a floor."""
        return _names_in(self._pods)

    def forget_pod(self, uid: str) -> None:
        """Forget a pod that is gone."""
        Path(self._regrants, uid).unlink(missing_ok=True)
        Path(self._pods, uid).unlink(missing_ok=True)

    def regrants(self) -> Regrants:
        """The newer allocations of resized pods; mostly none. An unreadable file is deleted and handed over again."""
        found = dict[str, Regrant]()
        for uid in _names_in(self._regrants):
            try:
                found[uid] = _REGRANT.decode(Path(self._regrants, uid).read_bytes())
            except FileNotFoundError:
                continue
            except (msgspec.MsgspecError, ValueError):
                Path(self._regrants, uid).unlink(missing_ok=True)
        return found

    def regrant(self, uid: str, regrant: Regrant) -> None:
        """Record a newer allocation; the floor is raised first, so that nothing older can start any more."""
        self.raise_floor(uid, max(regrant.gen, self.floor(uid)))
        _make(self._regrants)
        write_whole(f"{self._regrants}/{uid}", msgspec.json.encode(regrant))


def _make(folder: str) -> None:
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)


def _touched(path: str) -> None:
    """Create an empty file; only its existence matters, so it needs no temporary name."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _names_in(folder: str) -> tuple[str, ...]:
    """The files of a folder except those still being written; none if the folder does not exist."""
    try:
        with os.scandir(folder) as entries:
            return tuple(entry.name for entry in entries if not entry.name.startswith("."))
    except FileNotFoundError:
        return ()
