"""Runs in a child process that has the simulated driver: answers each line of Python with a line of JSON.

Lines can use all of pynvml, the plain `library`, and `use`, which talks to simgpud as libcuda does and needs no CUDA.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from simgpu.daemon.wire import BLOCK, Ask, Caller

callers: list[Caller] = []


def use(root: Path, card: int, *amounts: int, kind: int = BLOCK) -> list[int]:
    """Attach this process to a card, with this much memory, until it ends; return the results."""
    caller = Caller(root)
    callers.append(caller)
    replies = [caller.call(Ask.ATTACH, card=card)]
    replies += [caller.call(Ask.TAKE, card=card, kind=kind, size=amount) for amount in amounts]
    return [int(reply.result) for reply in replies]


def plain(value: object) -> object:
    """The same in types that JSON has."""
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
    """("ok", value), ("nvml", its error's number), or ("error", the exception)."""
    try:
        return "ok", plain(eval(line, names))  # noqa: S307 (the test's own)
    except names["NVMLError"] as error:
        return "nvml", error.value
    except Exception as error:  # noqa: BLE001 (the test must see it, whatever it is)
        return "error", f"{type(error).__name__}: {error}"


def main(root: str) -> None:
    """Answer until there are no more lines."""
    names: dict[str, Any] = {"library": ctypes.CDLL("libnvidia-ml.so.1"), "use": partial(use, Path(root))}
    exec("from pynvml import *; import ctypes, os, struct, threading, time", names)  # noqa: S102
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answered(line, names)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
