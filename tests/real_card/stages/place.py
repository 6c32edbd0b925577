"""A broker on the card at hand, and containers as far as a program can tell, without a container runtime.

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
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from partage_isolation.library.installation import install
from partage_isolation.library.objects import built
from partage_plugins.vocabulary.names import CardId
from real_card.ground import DRIVER_ROOT, program, user_environment
from support.isolated import BrokerHost, Contained, served

GIB: Final = 1 << 30
LIMIT: Final = 20 * GIB
_DRIVER: Final = "driver"


class Container:
    def __init__(self, contained: Contained, environment: Mapping[str, str]) -> None:
        self.contained = contained
        self.environment = {**environment, "LD_PRELOAD": contained.preload}

    @property
    def got(self) -> float:
        """The part of the card's time in the last ten seconds, by the broker's account; 0 where it is not metered."""
        time = self.contained.told().cards[0].time
        return time.got.s10 if time else 0.0


class Place:
    def __init__(self, host: BrokerHost, library: Path, card: Mapping[str, Any]) -> None:
        self._host, self._library, self.card = host, library, card

    @property
    def memory(self) -> int:
        """A container's: 20 GiB, or half of a smaller card."""
        return min(LIMIT, int(self.card["memory_bytes"]) // 2)

    @property
    def findings(self) -> Sequence[str]:
        return self._host.told().findings

    def container(self, *, memory: int | None = None, share: int = 1000, limit: int = 1000) -> Container:
        contained = self._host.prepare(memory or self.memory, share=share, limit=limit)
        contained.install(self._library)
        return Container(contained, user_environment())


def told(argv: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """What a program answered with its last line; where it failed, its last complaint is ours."""
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv[2:])} ended with {done.returncode}: {' '.join(done.stderr.split())[-400:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@contextmanager
def a_place(**settings: str) -> Generator[Place]:
    root = Path(tempfile.mkdtemp(prefix="pr-", dir="/tmp"))  # sockets want short paths
    driver = Path(os.environ[DRIVER_ROOT])
    try:
        (root / _DRIVER).symlink_to(driver)
        card = told(program("machine", "card"), user_environment())
        library = install(root / "installed", driver, objects=built()).folder
        told_settings = {"on_violation": "report", **settings}
        with served(root, library=library, driver_root=f"/{_DRIVER}", settings=told_settings) as broker:
            yield Place(BrokerHost(broker, lambda _index: CardId(card["uuid"])), library, card)
    finally:
        shutil.rmtree(root, ignore_errors=True)
