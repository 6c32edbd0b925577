"""The child process, from its start to its end: opens the driver once, has a session with it, says why it ends.

NVML is called in the main thread, which may hang in it for ever; another one waits for events, and a third for the end
of the parent, so that a child which hangs does not outlive it. When the driver is gone or another one this process
ends: only a new one loads a new library and finds new cards.
"""

from __future__ import annotations

import os
import resource
import socket
import sys

from partage_gpu.driver_root import installed_root
from partage_gpu.nvml import wire
from partage_gpu.nvml.libraries import NoDriver, open_driver
from partage_gpu.nvml.parent import Parent, end_with_parent, give_memory_back


def main(said: str) -> None:
    """Until the parent or the driver is gone; `said` is where people say that the driver is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection = socket.socket(fileno=0)
    end_with_parent()
    parent, driver_root = Parent(connection), installed_root(said)
    try:
        open_driver(driver_root)
        from partage_gpu.nvml.session import Session  # noqa: PLC0415  see opening.py

        give_memory_back()
        Session(driver_root, parent).serve(connection)
    except NoDriver as gone:
        parent.tell(wire.Ended(gone.trouble))
    # No finalisation: it would wait for a thread that may be in the driver.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
