"""What a child process that asks NVML does at its start: it will end with its parent, and it makes itself small."""

from __future__ import annotations

import ctypes
import gc
import os
import select
import threading


def end_with_parent() -> None:
    """From now on, whatever the main thread waits for. Standard input is the socket between them."""
    threading.Thread(target=_wait_for_the_end, name="parent", daemon=True).start()


def _wait_for_the_end() -> None:
    """The kernel tells that the other end of the socket is closed."""
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    os._exit(0)


def give_memory_back() -> None:
    """Without cached bytecode, as in some images, to import pynvml takes 11 MiB more than to have it."""
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
