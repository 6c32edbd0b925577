"""partage-oci in a folder with its settings, with an agent or a broker that the test chooses.

It execs a runtime that shows its input: `SHOWS_WORDS`, or one of the system's own programs.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from support.builds import OUT, ROOT, made
from support.sanitized import OPTIONS
from support.sockets import LineServer

NAME: Final = "partage-oci"
SOURCES: Final = ROOT / "oci/runtime"
SHOWS_WORDS: Final = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"
ANSWER_MS: Final = 200
"""Too short to notice while an agent never answers."""
_PEER: Final = struct.Struct("3i")


@cache
def built() -> Path:
    """The program as it is installed."""
    return made(SOURCES, f"{OUT}/{NAME}") / NAME


@cache
def sanitized() -> Path:
    """The program with short timeouts, which exits with REPORTED on memory and arithmetic errors."""
    waits = f"-DANSWER_MS={ANSWER_MS} -DBROKER_MS={ANSWER_MS} -DBROKER_ABSENT_MS={ANSWER_MS}"
    return made(SOURCES, f"{OUT}/{NAME}", f"CFLAGS=-O1 -g {waits}", "SANITIZE=address,undefined") / NAME


class Program:
    """One installed partage-oci; its runtime prints its arguments."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self.socket, self.broker, self.log = folder / "agent", folder / "broker", folder / "log"
        shutil.copy(program, self.path)
        self.runtime = self.script("runtime", SHOWS_WORDS)
        self.configure()

    def script(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def configure(self, *lines: str, **settings: object) -> None:
        """Write the default settings with these changes, and more lines after them."""
        usual: dict[str, object] = {"socket": self.socket, "broker": self.broker, "runtime": self.runtime}
        known = usual | {"agent_wait_ms": 0} | settings
        text = [f"{name} {value}" for name, value in known.items()] + list(lines)
        (self.folder / f"{NAME}.conf").write_text("\n".join(text) + "\n")

    def bundle(self, config: object, name: str = "bundle") -> Path:
        """A container's bundle, with a config.json of these bytes or this content."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        content = config if isinstance(config, bytes) else json.dumps(config).encode()
        (folder / "config.json").write_bytes(content)
        return folder

    def run(
        self, *words: object, stdin: bytes = b"", cwd: Path | None = None, inside: Sequence[object] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        """Run it; `inside` is a command prefix."""
        argv = list(map(str, (*inside, self.path, *words)))
        environment = os.environ | OPTIONS
        return subprocess.run(argv, input=stdin, capture_output=True, cwd=cwd, env=environment, check=False)

    def create(self, config: object, *flags: object) -> subprocess.CompletedProcess[bytes]:
        """Call it as Docker's shim does."""
        logged = ("--log", self.log, "--log-format", "json")
        return self.run(*logged, *flags, "create", "--bundle", self.bundle(config), "c1")

    def version(self) -> tuple[int, int]:
        """Changes whenever the bundle's config.json is written."""
        found = (self.folder / "bundle/config.json").stat()
        return found.st_ino, found.st_mtime_ns

    def config(self) -> Any:
        """The bundle's current config.json."""
        return json.loads((self.folder / "bundle/config.json").read_bytes())


class Daemon(LineServer):
    """Gives its answers in order and repeats the last one; an empty one is none."""

    def __init__(self, path: Path, *answers: bytes | None) -> None:
        self.asked: list[Any] = []
        self.pids: list[int] = []
        self._answers = list(answers)
        super().__init__(path)

    def answer(self, line: bytes, peer: socket.socket) -> bytes | None:
        self.asked.append(json.loads(line))
        pid, _, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        self.pids.append(pid)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def line(**answer: object) -> bytes:
    return json.dumps(answer).encode() + b"\n"
