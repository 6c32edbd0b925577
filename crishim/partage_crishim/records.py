"""What must outlive this process: which containers are to be cleaned up after, and which allocations are old.

`containers/<key>`: a container that plugins were asked to adjust. It stays until they were told of its removal.
`pods/<uid>`: the newest allocation that was acted on for a pod. It stays until the runtime has no sandbox of the pod,
so an older one is refused even after every container of the newer one is removed. `regrants/<uid>`: what counts of a
pod that was resized, for as long. All live below /run and end with the node's boot; the runtime's list outlives it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import write_whole
from partage_crishim.rules.regrants import Regrant, Regrants
from partage_plugins.vocabulary import ContainerKey

_REGRANT: Final = msgspec.json.Decoder(Regrant)


class Records:
    def __init__(self, folder: Path) -> None:
        self._containers, self._pods = str(folder / "containers"), str(folder / "pods")
        self._regrants = str(folder / "regrants")

    def adjusting(self, key: ContainerKey) -> None:
        """Plugins are about to be asked."""
        with contextlib.suppress(FileNotFoundError):
            _touched(f"{self._containers}/{key}")
            return
        _make(self._containers)
        _touched(f"{self._containers}/{key}")

    def adjusted(self) -> tuple[ContainerKey, ...]:
        """All that plugins may have prepared something for."""
        return tuple(map(ContainerKey, _names_in(self._containers)))

    def removed(self, key: ContainerKey) -> None:
        """Plugins know that it is gone."""
        Path(self._containers, key).unlink(missing_ok=True)

    def floor(self, uid: str) -> int:
        """The newest allocation seen of a pod; 0 for none. The uid is one that an allocation may name."""
        try:
            with open(f"{self._pods}/{uid}", "rb", buffering=0) as file:  # noqa: PTH123  see `write_whole`
                return int(file.read())
        except (FileNotFoundError, ValueError):
            return 0

    def raise_floor(self, uid: str, gen: int) -> None:
        """An allocation is acted on that is newer than the floor."""
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
        """The pod is gone for good."""
        Path(self._regrants, uid).unlink(missing_ok=True)
        Path(self._pods, uid).unlink(missing_ok=True)

    def regrants(self) -> Regrants:
        """Of all pods that were resized; mostly none. What can't be read is gone, and is handed over again."""
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
        """Counts from now on; its floor first, so that nothing older begins any more."""
        self.raise_floor(uid, max(regrant.gen, self.floor(uid)))
        _make(self._regrants)
        write_whole(f"{self._regrants}/{uid}", msgspec.json.encode(regrant))


def _make(folder: str) -> None:
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)


def _touched(path: str) -> None:
    """An empty file: it is there or not, so it needs no other name while it is written."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _names_in(folder: str) -> tuple[str, ...]:
    """The files of a folder, without those that are being written; none where there is no folder."""
    try:
        with os.scandir(folder) as entries:
            return tuple(entry.name for entry in entries if not entry.name.startswith("."))
    except FileNotFoundError:
        return ()
