"""The child process that alone loads NVML, from its start to its end.

NVML is called in the main thread, which may hang in it for ever; another one waits for the end of the parent, so that a
child which hangs does not outlive it. When the driver is gone or another one this process ends: only a new one loads a
new library and finds new cards.
"""

from __future__ import annotations

import os
import resource
import socket
import sys

from partage_gpu.nvml.parent import end_with_parent, give_memory_back
from partage_isolation.watching.library import Library, NoAnswer, NoDriver
from partage_isolation.watching.speech import MAX_BYTES, Ended, Ready, Refused, Told, encoded, question


def main(driver_root: str) -> None:
    """Until the parent or the driver is gone."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection = socket.socket(fileno=0)
    end_with_parent()
    try:
        library = Library(driver_root)
        give_memory_back()
        _tell(connection, Ready())
        while packet := connection.recv(MAX_BYTES):
            _tell(connection, _answer(library, question(packet).card))
    except NoDriver as gone:
        _tell(connection, Ended(str(gone), has_library=gone.has_library))
    # No finalisation: nothing of the driver's runs any more.
    os._exit(0)


def _answer(library: Library, card: str) -> Told:
    try:
        return library.use(card)
    except NoAnswer as error:
        return Refused(card, str(error))


def _tell(connection: socket.socket, message: Told) -> None:
    """Without a parent there is nothing left to do here."""
    try:
        connection.send(encoded(message))
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
