"""A process that continuously allocates and frees memory of a simulated card, and survives restarts of the broker.

Arguments: the container's socket, a seed, and the most bytes that it allocates. It writes one line at the end, once its
input is closed: how often it allocated, freed, was refused and reconnected.
"""

from __future__ import annotations

import contextlib
import random
import select
import sys
import threading
import time
from pathlib import Path

from partage_isolation.wire.packets import Flag, Result
from partage_simgpu.client import Cuda, CudaError
from support.broker_client import Client

_AGAIN_S = 0.02
_PATH, _SEED, _MOST = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
_turn = threading.Lock()


class Load:
    def __init__(self) -> None:
        self.random = random.Random(_SEED)  # noqa: S311  chooses what to do
        self.held: list[tuple[int, int]] = []
        self.taken = self.given = self.refused = self.again = 0
        self.client = Client(_PATH)
        assert self.client.hello() == Result.OK
        while not self.client.context():
            time.sleep(_AGAIN_S)
        self.card = Cuda()
        self.client.amounts(flags=Flag.CONTEXT_MADE)

    def step(self) -> None:
        if self.held and self.random.random() < 0.5:
            self.give()
        else:
            self.take(self.random.randrange(1, _MOST >> 21) << 21)

    def take(self, amount: int) -> None:
        with _turn:
            if not self.client.take(amount):
                self.refused += 1
                return
            try:
                self.held.append((self.card.allocate(amount), amount))
            except CudaError:  # the card itself is full: others have other limits
                self.client.give(amount)
                return
            self.taken += 1

    def give(self) -> None:
        with _turn:
            address, amount = self.held.pop(self.random.randrange(len(self.held)))
            self.card.free(address)
            self.given += 1
            # Update the account first: if the message fails, the broker gets the amount when we reconnect.
            self.client.used[0] -= amount
            self.client.changes += 1
            self.client.returned(self.client.used[0])

    def come_again(self) -> None:
        with _turn:
            self.again += 1
            while True:
                with contextlib.suppress(OSError, AssertionError):
                    result = self.client.resume()
                    if result == Result.UNKNOWN and self.client.hello() != Result.OK:
                        continue
                    self.client.amounts()
                    if self.client.lend(self.client.used.get(0, 0)):
                        return
                time.sleep(_AGAIN_S)

    def obey(self) -> None:
        while True:
            with contextlib.suppress(OSError, ValueError, AssertionError):
                signals = self.client.signals
                if signals is not None and select.select([signals], [], [], 0.05)[0]:
                    with _turn:
                        self.client.obey()
                    continue
            time.sleep(0.005)

    def told(self) -> str:
        return f"{self.taken} {self.given} {self.refused} {self.again}"


def main() -> None:
    load = Load()
    threading.Thread(target=load.obey, daemon=True).start()
    print("ready", flush=True)  # noqa: T201
    while not select.select([sys.stdin], [], [], 0)[0]:
        try:
            load.step()
        except (OSError, AssertionError):
            load.come_again()
    print(load.told(), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
