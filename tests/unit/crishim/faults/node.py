"""A node in a folder with a real crishim process, a runtime behind it, and kubelet's calls in front of it.

One sandbox runs under NVIDIA's handler, so that a whole card is given by a variable and no driver is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from partage_base.condition import Condition
from partage_plugins.api.places import CRISHIM_CONDITION, INVENTORY_FILE
from rig.client.wait import patient
from rig.patience import Log
from support.fake_runtime import FakeRuntime
from support.splice.sockets import Calling, RuntimeSocket
from support.splice.wire import CREATE
from unit.crishim.rules.allocations import CARD, KEY, NODE, WHOLE, allocation, inventory, signed
from unit.crishim.rules.requests import Create, Seen
from unit.keyring.samples import write_public

SOCKET: Final = "run/partage/crishim.sock"
RUNTIME: Final = "run/containerd/containerd.sock"
FILE: Final = "etc/partage/partage.toml"
KEYS: Final = "etc/partage/keys.d"
OWN: Final = "run/partage/crishim"
VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"

PLAIN: Final = Create(container="plain", sandbox="sandbox-2", env=[("PATH", "/bin"), (VISIBLE, "none")])
GREEDY: Final = Create(container="greedy", env=[(VISIBLE, "all")])
GRANTED: Final = Create(annotations=signed(allocation(WHOLE)))
BOARD: Final = Create(
    annotations=signed(allocation(containers={"main": {"fpga": [{"board": "fpga0"}]}})), container="main"
)


class Node:
    """A node's folder, and what tests break in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runtime = FakeRuntime()
        self.runtime.handlers["sandbox-1"] = "nvidia"
        self.runtime_socket = RuntimeSocket(root / RUNTIME, self.runtime)
        self.process: subprocess.Popen[bytes] | None = None
        self.log = root / "log"
        self.flags: tuple[str, ...] = ()
        self.env: dict[str, str] = {}
        self.taken: socket.socket | None = None
        self.text = ""
        self.write(INVENTORY_FILE, json.dumps(inventory(fpga={"boards": ["fpga0"]})))
        write_public(root / KEYS, KEY)

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def plugin(self, code: str, *, name: str = "fpga") -> None:
        """Install a node plugin; its module is `brought`."""
        self.write("plugins/brought.py", code)
        self.write("plugins/brought-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
        self.write("plugins/brought-1.dist-info/entry_points.txt", f"[partage.node]\n{name} = brought:Plugin\n")

    def start(self, *, settings: Mapping[str, str] | None = None) -> None:
        """Start crishim as its unit does."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
        environment = {
            **kept,
            "PYTHONPATH": ":".join([str(self.root / "plugins"), *sys.path]),
            "PARTAGE_ROOT": str(self.root),
            "PARTAGE_NODE_NAME": NODE,
            "PARTAGE_PLUGINS_BLOCK": "isolation",
            "PARTAGE_CRISHIM_PLUGIN_DEADLINE_S": "30",
            **self.env,
            **(settings or {}),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "partage_crishim", *self.flags],
                env=environment,
                stdin=subprocess.DEVNULL,
                stderr=log,
            )

    def reload(self) -> None:
        """Reload crishim as `systemctl reload` does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    async def until(self, is_so: Callable[[], bool], what: str, seen: Callable[[], object] = lambda: "nothing") -> None:
        """Wait until the predicate is true, while crishim lives."""
        async with patient(what, seen=seen, logs=[Log("crishim", self.log)]):
            while not is_so():  # noqa: ASYNC110  what is waited for knows of no event
                await asyncio.sleep(0.02)

    async def until_ended(self) -> int:
        """The exit code, once crishim has ended by itself."""
        process = self.process
        assert process is not None
        await self.until(lambda: process.poll() is not None, "it ends")
        return process.wait()

    @property
    def condition(self) -> Condition | None:
        """What crishim reports of itself."""
        path = self.root / CRISHIM_CONDITION
        return msgspec.json.decode(path.read_bytes(), type=Condition) if path.is_file() else None

    @property
    def causes(self) -> list[str] | None:
        """The causes of its faults, or None where it reports nothing."""
        return None if self.condition is None else [each.cause for each in self.condition.faults]

    async def until_told(self, *causes: str) -> None:
        """Wait until crishim reports exactly these causes."""
        await self.until(lambda: self.causes == list(causes), f"it tells of {causes}", seen=lambda: self.causes)

    async def create(self, create: Create) -> str | Seen:
        """The result of the call: the message of a refusal, or the request that the runtime got."""
        reader, writer = await self._connected()
        try:
            self.runtime.created.clear()
            call = await Calling(reader, writer).call(CREATE, create.bytes())
        finally:
            writer.close()
        said = dict(call.headers)
        if said["grpc-status"] != "0":
            assert said["grpc-status"] == "9", said
            return said["grpc-message"]
        (created,) = self.runtime.created
        return Seen(created)

    async def starts_what_asks_for_nothing(self) -> None:
        """Ordinary containers pass unchanged, and the guard keeps those without a grant from cards."""
        passed = await self.create(PLAIN)
        assert isinstance(passed, Seen), passed
        assert passed.raw == PLAIN.bytes()
        guarded = await self.create(GREEDY)
        assert isinstance(guarded, Seen), guarded
        assert guarded.variable(VISIBLE) == b"void"

    async def honours(self, create: Create = GRANTED) -> None:
        """The request to the runtime has the granted card in the end, after retries like kubelet's."""
        given = await self.create(create)
        async with patient("it is started", seen=lambda: given, logs=[Log("crishim", self.log)]):
            while isinstance(given, str):
                given = await self.create(create)
        assert given.variable(VISIBLE) == CARD.encode()

    async def refuses(self, says: str, create: Create = GRANTED) -> None:
        """The message that kubelet shows names the cause; one about a slow runtime may come before it."""
        said = await self.create(create)
        async with patient(f"it is refused with {says!r}", seen=lambda: said, logs=[Log("crishim", self.log)]):
            while isinstance(said, str) and says not in said:
                said = await self.create(create)
        assert isinstance(said, str), "it was started"

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect as soon as crishim listens; the socket of one that was killed refuses connections."""
        async with patient("crishim listens", logs=[Log("crishim", self.log)]):
            while True:
                process = self.process
                assert process is not None
                assert process.poll() is None, f"crishim has ended:\n{self.log.read_text()}"
                with contextlib.suppress(OSError):
                    return await asyncio.open_unix_connection(self.root / SOCKET)
                await asyncio.sleep(0.02)


@asynccontextmanager
async def a_node() -> AsyncGenerator[Node, None]:
    """A node with a running runtime; nothing is left afterwards."""
    with TemporaryDirectory() as folder:  # a socket's path must be short
        node = Node(Path(folder))
        async with node.runtime_socket:
            try:
                yield node
            finally:
                node.kill()
