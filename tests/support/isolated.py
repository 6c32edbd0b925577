"""A running broker on a simulated node, and containers prepared by it, for tests without a container runtime.

    with isolated(cards=("h100",)) as place:
        container = place.prepare(memory=1 << 30)              # one card; or memory=(1 << 30, 2 << 30) for several
        with container.client() as process: ...                # a process that speaks the protocol: `Client`
        container.install(folder_of_the_library)               # then container.environment is for programs
        place.broker.restart()                                 # as systemd would after a kill

`place.node` is the simulated node, `place.told()` the report that `partage top` reads. Paths are short enough for
sockets.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from partage_base.version import VERSION
from partage_isolation.library.current import make_current
from partage_isolation.library.pages import install_page
from partage_isolation.store.folders import OBJECTS
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_isolation.wire.messages import BrokerReport, ContainerReport, Prepare, Prepared, SetLimits
from partage_plugins.api.gpu import Card as CardFacts
from partage_plugins.api.gpu import GpuGrant, GpuPart
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.names import (
    BudgetName,
    CardId,
    ContainerKey,
    ContainerName,
    Kind,
    Namespace,
    PodName,
    PodUid,
)
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.api.pods import Gang, PodRef
from partage_plugins.codecs.inventory import encode_inventory
from partage_simgpu.description import card_uuid
from partage_simgpu.node import SimulatedNode
from rig.client import wait
from rig.patience import Log, Logged, patience_s
from support.broker_client import Client
from support.simgpu import NODE, Card, simulated_node

_LIBRARY: Final = "library"
_DRIVER: Final = "root"


class Broker:
    """The broker process, which tests start, stop and kill."""

    def __init__(self, root: Path, *, settings: Mapping[str, str]) -> None:
        self.root, self._settings = root, settings
        self._process: subprocess.Popen[bytes] | None = None
        self.client = BrokerClient(root, deadline_s=600.0)
        self.log = root / "broker.log"
        self.said = Log("broker", self.log)

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def start(self) -> None:
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in self._settings.items()]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "partage_isolation", *flags], stdout=log, stderr=log
            )
        until(self._answers, logs=[self.said])

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self._wait()

    def restart(self) -> None:
        """Kill it, and start the next one."""
        self.kill()
        self.start()

    def stop(self) -> int:
        if self._process is None:
            return 0
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        return self._wait()

    def send(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def _wait(self) -> int:
        assert self._process
        code = self._process.wait(patience_s())
        self._process = None
        return code

    def _answers(self) -> bool:
        assert self._process
        assert self._process.poll() is None, f"the broker has ended\n{self.said.tail()}"
        with contextlib.suppress(ControlError):
            self.client.tell()
            return True
        return False


@dataclass
class Contained:
    place: Isolated
    question: Prepare
    prepared: Prepared
    _clients: list[Client] = field(default_factory=list[Client])

    @property
    def key(self) -> ContainerKey:
        return self.question.key

    @property
    def folder(self) -> Path:
        return Path(self.prepared.mounts[0].host_path)

    @property
    def socket(self) -> Path:
        return self.folder / "broker"

    def install(self, built: Path) -> None:
        """Copy the library to the path of its mount, so that programs outside a container find their socket."""
        for name in OBJECTS:
            shutil.copy(built / name, self.folder / "lib" / name)

    @property
    def preload(self) -> str:
        return ":".join(str(self.folder / "lib" / name) for name in OBJECTS)

    @property
    def environment(self) -> dict[str, str]:
        """That of its programs, once the library is installed."""
        return {**self.place.node.environment, "LD_PRELOAD": self.preload}

    @property
    def limit(self) -> int:
        """Bytes of the first card that it was granted."""
        return self.question.grants[0].memory_bytes

    def client(self) -> Client:
        """A client in this process that sent HELLO on both sockets."""
        client = Client(self.socket)
        client.hello()
        return client

    def told(self) -> ContainerReport:
        return next(each for each in self.place.told().containers if each.key == self.key)

    def lower(self, memory: int | None, *, card: int = 0) -> None:
        grant = self.question.grants[card]
        self.place.broker.client.set_limits(SetLimits(key=self.key, card=grant.card, memory_bytes=memory))


class Isolated:
    def __init__(self, node: SimulatedNode, broker: Broker) -> None:
        self.node, self.broker, self.root = node, broker, broker.root
        self._count = 0

    def told(self) -> BrokerReport:
        return self.broker.client.tell()

    def held(self, pid: int) -> int:
        """The first card's figure for a process, with its context."""
        return next((each.bytes for each in self.node.status()[0].processes if each.pid == pid), 0)

    def tell_inventory(self, card_bytes: int) -> None:
        """Write an inventory of the first card, as the advertiser would; it tells the broker the card's capacity."""
        known = CardFacts(
            id=CardId(card_uuid(NODE, 0)),
            index=0,
            model="any",
            memory_bytes=card_bytes,
            compute_capability="9.0",
            pci="0000:01:00.0",
            pool="shared",
        )
        part = GpuPart(driver="580.65.06", cuda="13.0", cards=(known,))
        path = self.root / INVENTORY_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_inventory(Inventory(kinds={Kind("gpu"): part})))

    def prepare(  # noqa: PLR0913  what a container is granted
        self,
        memory: int | Sequence[int] = 1 << 30,
        *,
        name: str = "main",
        gen: int = 1,
        key: ContainerKey | None = None,
        share: int = 100,
        limit: int = 1000,
        budget: str | None = None,
        pod: PodRef | None = None,
        gang: str | None = None,
        first: int = 0,
        movable: bool = False,
    ) -> Contained:
        """A container with this memory on each card from number `first` on; `share` and `limit` are for each, in milli.

        `pod`: another container's; containers of one pod with the same `budget` share its grant. `gang`: a gang of two.
        """
        self._count += 1
        amounts = [memory] if isinstance(memory, int) else list(memory)
        question = Prepare(
            key=key or ContainerKey(f"{self._count:032x}"),
            pod=pod or self._new_pod(),
            container=ContainerName(name),
            gen=gen,
            grants=tuple(
                GpuGrant(
                    card=CardId(card_uuid(NODE, index)),
                    share_milli=share,
                    limit_milli=limit,
                    memory_bytes=amount,
                    movable=movable,
                )
                for index, amount in enumerate(amounts, first)
            ),
            budget=None if budget is None else BudgetName(budget),
            gang=None if gang is None else Gang(Namespace("tests"), gang, 2),
        )
        return Contained(self, question, self.broker.client.prepare(question))

    def _new_pod(self) -> PodRef:
        return PodRef(namespace=Namespace("tests"), name=PodName(f"pod-{self._count}"), uid=PodUid(f"u{self._count}"))


@contextmanager
def served(root: Path, *, library: Path | None, driver_root: str, settings: Mapping[str, str]) -> Generator[Broker]:
    """A broker with its own root folder, which accounts for that driver's cards; it is stopped afterwards."""
    own = root / _LIBRARY / VERSION
    own.mkdir(parents=True)
    for name in OBJECTS:
        if library is not None:
            shutil.copy(library / name, own / name)
        else:
            (own / name).write_bytes(bytes(4096))
    make_current(own.parent, own.name)
    install_page(own.parent)
    told = {
        "root": str(root),
        "driver_root": driver_root,
        "library_folder": f"/{_LIBRARY}",
        "runtime": "/no-runtime.sock",
        "audit_every_s": "0.2",
        **settings,
    }
    broker = Broker(root, settings=told)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@contextmanager
def isolated(
    *, cards: Sequence[str | Card] = ("h100",), library: Path | None = None, settings: Mapping[str, str] | None = None
) -> Generator[Isolated]:
    """A simulated node and a broker; both are removed afterwards.

    `library` is a folder with the objects of the preload library that `prepare` mounts; without it they are empty
    files.
    """
    root = Path(tempfile.mkdtemp(prefix="pi-", dir="/tmp"))
    try:
        with (
            simulated_node(root, cards=cards) as node,
            served(root, library=library, driver_root=f"/{_DRIVER}", settings=settings or {}) as broker,
        ):
            yield Isolated(node, broker)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def until(
    condition: Callable[[], bool], *, why: Callable[[], str] = lambda: "it is not so", logs: Iterable[Logged] = ()
) -> None:
    wait.until(condition, lambda: None if condition() else why(), every_s=0.005, logs=logs)
