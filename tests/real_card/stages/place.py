"""A broker on the card at hand, and containers without a container runtime, as far as programs can see.

    with a_place() as place:
        container = place.container(memory=20 << 30, share=300)
        subprocess.run([...], env=container.environment)

The library is the one that an installer would write for this very driver.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from partage_isolation.library.installation import install
from partage_isolation.library.objects import OBJECTS, built
from partage_isolation.wire.client import BrokerClient
from partage_isolation.wire.messages import CardHeld, Prepare
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.names import CardId, ContainerKey, ContainerName, Namespace, PodName, PodUid
from partage_plugins.api.pods import PodRef
from real_card.ground import DRIVER_ROOT, program, user_environment
from support.isolated import served

GIB: Final = 1 << 30
LIMIT: Final = 20 * GIB
_DRIVER: Final = "driver"


class Container:
    def __init__(self, client: BrokerClient, question: Prepare, library: Path) -> None:
        self._client, self._key = client, question.key
        folder = Path(client.prepare(question).mounts[0].host_path) / "lib"
        for name in OBJECTS:
            shutil.copy(library / name, folder / name)
        preload = ":".join(str(folder / name) for name in OBJECTS)
        self.environment = {**user_environment(), "LD_PRELOAD": preload}

    @property
    def held(self) -> CardHeld:
        return next(each.cards[0] for each in self._client.tell().containers if each.key == self._key)

    @property
    def got(self) -> float:
        """The part of the card's time in the last ten seconds, by the broker's account; 0 if it is not metered."""
        time = self.held.time
        return time.got.s10 if time else 0.0


class Place:
    def __init__(self, client: BrokerClient, library: Path, card: Mapping[str, Any]) -> None:
        self._client, self._library, self._card, self._count = client, library, card, 0

    @property
    def memory(self) -> int:
        """A container's memory: 20 GiB, or half of a smaller card."""
        return min(LIMIT, int(self._card["memory_bytes"]) // 2)

    @property
    def findings(self) -> Sequence[str]:
        return self._client.tell().findings

    def container(self, *, memory: int | None = None, share: int = 1000, limit: int = 1000) -> Container:
        self._count += 1
        name = f"pod-{self._count}"
        grant = GpuGrant(
            card=CardId(self._card["uuid"]),
            share_milli=share,
            limit_milli=limit,
            memory_bytes=memory or self.memory,
        )
        question = Prepare(
            key=ContainerKey(f"{self._count:032x}"),
            pod=PodRef(namespace=Namespace("real"), name=PodName(name), uid=PodUid(name)),
            container=ContainerName("main"),
            gen=1,
            grants=(grant,),
        )
        return Container(self._client, question, self._library)


def told(argv: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """A program's answer, from its last line; if it failed, raises with its last error."""
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        complaint = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        raise SystemExit(f"{' '.join(argv[2:])} ended with {done.returncode}: {complaint}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@contextmanager
def a_place(**settings: str) -> Generator[Place]:
    root = Path(tempfile.mkdtemp(prefix="pr-", dir="/tmp"))  # socket paths must be short
    driver = Path(os.environ[DRIVER_ROOT])
    try:
        (root / _DRIVER).symlink_to(driver)
        card = told(program("machine", "card"), user_environment())
        library = install(root / "installed", driver, objects=built()).folder
        told_settings = {"on_violation": "report", **settings}
        with served(root, library=library, driver_root=f"/{_DRIVER}", settings=told_settings) as broker:
            try:
                yield Place(broker.client, library, card)
            finally:
                sys.stderr.write(f"{broker.said.tail()}\n")
    finally:
        shutil.rmtree(root, ignore_errors=True)
