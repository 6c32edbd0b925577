"""A container's folder with the library, a driver that does nothing, and a broker that always grants all cards.

    with lending(Time.TIMESLICE) as place:
        subprocess.run([...], env=place.environment)

The cost of a change of time slices is not measured here: the next one is granted before one ends.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final
from uuid import UUID

from bench.isolation.programs import programs
from partage_isolation.library.objects import CUDA, OBJECTS, built
from partage_isolation.wire.packets import What
from support.lender import Granter

CARDS: Final = 2
LIMIT: Final = 8 << 30
_FIRST_UUID: Final = b"0123456789abcdef"
"""The first card of the driver that does nothing; the next card's UUID is one more."""
_QUANTUM_S: Final = 0.02
_LENT_S: Final = 2.0


class Time(Enum):
    FREE = "free"
    TIMESLICE = "lease"


@dataclass(frozen=True)
class Lending:
    library: Path
    driver: Path
    broker: Granter

    @property
    def environment(self) -> Mapping[str, str]:
        return {"LD_PRELOAD": ":".join(str(self.library / name) for name in OBJECTS)}

    @property
    def joined(self) -> int:
        """The number of cards on which programs were about to launch, one after the other."""
        return len(self.broker.joined)

    @property
    def ended(self) -> bool:
        return any(packet.what is What.DRAINED for _, packet, _ in self.broker.timeslices)


def _uuid(card: int) -> str:
    return f"GPU-{UUID(int=int.from_bytes(_FIRST_UUID) + card)}"


def _lend(broker: Granter, over: threading.Event) -> None:
    """A time slice is never written twice in one epoch, so each is a new one."""
    while not over.wait(_QUANTUM_S):
        for card in range(CARDS):
            broker.timeslice(card, seconds=_LENT_S)


@contextmanager
def _lent(broker: Granter) -> Generator[None]:
    over = threading.Event()
    thread = threading.Thread(target=_lend, args=(broker, over))
    for card in range(CARDS):
        broker.timeslice(card, seconds=_LENT_S)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _installed(folder: Path) -> tuple[Path, Path]:
    """Installs the library, and the driver by a name that the library does not know, for programs that compare both."""
    library, driver = folder / "lib", folder / "driver" / CUDA
    library.mkdir()
    driver.parent.mkdir()
    for name in OBJECTS:
        shutil.copy(built() / name, library / name)
    shutil.copy(programs() / "null" / CUDA, driver)
    past = driver.with_name("driver.so")
    past.symlink_to(driver)
    return library, past


@contextmanager
def lending(how: Time) -> Generator[Lending]:
    folder = Path(tempfile.mkdtemp(prefix="pl-", dir="/tmp"))  # socket paths must be short
    limits = {_uuid(card): LIMIT for card in range(CARDS)}
    try:
        library, driver = _installed(folder)
        with Granter(folder / "broker", limits) as broker:
            place = Lending(library, driver, broker)
            if how is Time.TIMESLICE:
                with _lent(broker):
                    yield place
            else:
                for card in range(CARDS):
                    broker.free(card)
                yield place
    finally:
        shutil.rmtree(folder)
