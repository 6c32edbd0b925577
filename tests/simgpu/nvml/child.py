"""Runs in a child process that has the simulated driver: answers each line of Python with a line of JSON.

Lines see all of pynvml, the plain `library`, and Kernel(root), which speaks to simgpud as libcuda does: to be a process
that uses a card takes no CUDA here.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Any

_REQUEST = struct.Struct("<IIIIQQ16s")
_REPLY = struct.Struct("<IIQQII16s")
_HELLO, _ATTACH, _DETACH, _TAKE, _GIVE = 1, 2, 3, 4, 5
_BLOCK = 1


class Kernel:
    """This process as a user of cards."""

    def __init__(self, root: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = os.open(f"{root}/run/nvidia-persistenced", os.O_PATH | os.O_DIRECTORY)
        self._socket.connect(f"/proc/self/fd/{folder}/socket")
        os.close(folder)
        self._call(_HELLO, number=1)

    def attach(self, card: int) -> int:
        """Begins a context; the row."""
        return self._call(_ATTACH, card)[0]

    def take(self, card: int, amount: int) -> int:
        """Takes memory; the piece."""
        return self._call(_TAKE, card, kind=_BLOCK, amount=amount)[1]

    def give(self, piece: int) -> None:
        """Gives a piece back."""
        self._call(_GIVE, number=piece)

    def _call(self, ask: int, card: int = 0, *, kind: int = 0, number: int = 0, amount: int = 0) -> tuple[int, int]:
        self._socket.send(_REQUEST.pack(ask, card, kind, 0, number, amount, bytes(16)))
        reply, files, _, _ = socket.recv_fds(self._socket, 4096, 4)
        for file in files:
            os.close(file)
        result, row, piece, _, _, _, _ = _REPLY.unpack_from(reply)
        if result != 0:
            raise OSError(f"simgpud said {result}")
        return row, piece


def plain(value: object) -> object:
    """Something that JSON knows."""
    if isinstance(value, (ctypes.Structure, ctypes.Union)):
        value = {name[0]: getattr(value, name[0]) for name in value._fields_}
    elif type(value).__module__ == "ctypes":  # a c_uint or the like
        value = getattr(value, "value", None)
    elif isinstance(value, ctypes.Array):
        value = list(value)
    elif hasattr(value, "__dict__"):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("ascii", "replace")
    return value if value is None or isinstance(value, (int, float, str)) else repr(value)


def answered(line: str, names: dict[str, Any]) -> tuple[str, object]:
    """("ok", value), ("nvml", its error's number), or ("error", what happened)."""
    try:
        return "ok", plain(eval(line, names))  # noqa: S307 (the test's own)
    except names["NVMLError"] as error:
        return "nvml", error.value
    except Exception as error:  # noqa: BLE001 (the test must see it, whatever it is)
        return "error", f"{type(error).__name__}: {error}"


def main(root: str) -> None:
    """Until there are no more lines."""
    names: dict[str, Any] = {"Kernel": Kernel, "root": root, "library": ctypes.CDLL("libnvidia-ml.so.1")}
    exec("from pynvml import *; import ctypes, os, struct, threading, time", names)  # noqa: S102
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answered(line, names)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
