"""Reads files of other components: kubelet's checkpoint of device plugins, its plugins' sockets, the last inventory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import structlog

from partage_gpu.discovery.device_plugin import Registered, Traces, registered_in
from partage_plugins.api.gpu import GPU, GpuPart
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError

CHECKPOINT: Final = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
SOCKETS: Final = "var/lib/kubelet/plugins_registry"
_LONGEST_CHECKPOINT: Final = 16 << 20
_log = structlog.get_logger()


class KubeletFolder:
    """kubelet's files, below the node's root. An unchanged checkpoint is not read again."""

    def __init__(self, root: Path) -> None:
        self._checkpoint = root / CHECKPOINT
        self._sockets = root / SOCKETS
        self._stamp: tuple[int, int, int] | None = None
        self._registered: Registered | None = None

    def traces(self) -> Traces:
        return Traces(registered=self._plugins(), sockets=self._drivers())

    def _plugins(self) -> Registered | None:
        try:
            state = self._checkpoint.stat()
            stamp = state.st_ino, state.st_mtime_ns, state.st_size
            if stamp != self._stamp:
                self._registered = registered_in(_beginning(self._checkpoint, _LONGEST_CHECKPOINT))
                self._stamp = stamp
        except FileNotFoundError:  # no device plugin ever registered here
            return {}
        except OSError:
            return None
        return self._registered

    def _drivers(self) -> tuple[str, ...] | None:
        try:
            return tuple(sorted(entry.name for entry in os.scandir(self._sockets)))
        except FileNotFoundError:
            return ()
        except OSError:
            return None


def last_part(root: Path) -> GpuPart | None:
    """The cards in this node's last inventory; None if there is none that can be read."""
    try:
        raw = _beginning(root / INVENTORY_FILE, MAX_ANNOTATION_BYTES + 1)
        return decode_inventory(raw, [GPU]).part(GPU)
    except FileNotFoundError:
        return None
    except (OSError, DecodeError) as error:
        _log.warning("cannot read the last inventory; cards that are missing now are unknown", why=str(error))
        return None


def _beginning(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)
