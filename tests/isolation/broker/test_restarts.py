"""The broker may die at any moment: no limit is exceeded, no program stops, and the accounts are right again soon."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Self

import pytest

from isolation.broker.workers import workers
from partage_base.version import VERSION
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Result, What
from rig.patience import patience_s
from support.isolated import Contained, Isolated, isolated, until
from support.procfs import descriptors
from support.simgpu import card
from support.sockets import connected

pytestmark = pytest.mark.slow
MIB = 1 << 20
KILLS = int(os.environ.get("TEST_BROKER_KILLS", "10"))
"""`make soak-rounds` does it more often."""


def test_who_was_connected_comes_again_with_its_token_and_everything_is_as_before(
    place: Isolated, container: Contained
) -> None:
    with workers(container, 2) as (one, other):
        assert one.do("context()")
        assert one.do("take(500 << 20)")
        place.broker.restart()
        told = container.told()
        assert [process.cards[0].state for process in told.processes if process.cards] == ["unconfirmed"]
        assert told.cards[0].charged_bytes >= 564 * MIB
        assert not other.do("client.resume() or client.take(500 << 20)")
        assert one.do("client.resume()") == Result.OK
        assert one.do("client.take(100 << 20)")
        until(lambda: {process.cards[0].state for process in container.told().processes if process.cards} == {"live"})


def test_who_died_meanwhile_is_charged_no_longer(place: Isolated, container: Contained) -> None:
    with workers(container, 2) as (one, other):
        assert one.do("context()")
        assert one.do("take(900 << 20)")
        place.broker.kill()
        one.kill()
        place.broker.start()
        assert other.do("client.resume()") == Result.OK
        until(lambda: other.do("client.take(800 << 20)"))


def test_a_stop_leaves_everything_for_the_next_one(place: Isolated, container: Contained) -> None:
    with workers(container, 1) as (one,):
        assert one.do("client.take(100 << 20)")
        before = container.told().cards
        assert place.broker.stop() == 0
        assert container.socket.exists()
        place.broker.start()
        assert container.told().cards == before
        assert one.do("client.resume()") == Result.OK


def test_lost_books_are_found_out_from_the_card_before_anything_more_is_lent(
    place: Isolated, container: Contained
) -> None:
    with workers(container, 2) as (one, other):
        assert one.do("context()")
        assert other.do("context()")
        assert one.do("take(600 << 20)")
        place.broker.kill()
        with (place.root / "run/partage/state/rows").open("r+b") as rows:
            rows.write(b"nonsense" * 100)
        place.broker.start()
        assert "could not be read" in place.broker.log.read_text()
        other.say("client.resume() == 3 and client.hello() == 0 and client.take(700 << 20)")
        time.sleep(0.2)  # the process that holds more reconnects after the one that wants it
        assert one.do("client.resume()") == Result.UNKNOWN
        assert one.do("client.hello()") == Result.OK
        one.do("client.amounts()")
        assert not other.end()
        assert one.do("client.lend(600 << 20)")
        assert place.node.status()[0].used_bytes <= 1024 * MIB


def test_a_fork_that_inherits_the_sockets_does_not_keep_its_parent_s_memory(container: Contained) -> None:
    with workers(container, 2) as (one, other):
        assert one.do("context()")
        assert one.do("client.take(900 << 20)")
        child = one.do("forked(20)")
        one.kill()
        try:
            until(lambda: other.do("client.take(800 << 20)"))
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_program_that_executes_another_begins_anew(container: Contained) -> None:
    with workers(container, 1) as (one,):
        assert one.do("context()")
        assert one.do("take(900 << 20)")
        one.execute()
        assert one.do("hello()") == Result.OK
        assert one.do("context()")
        until(lambda: one.do("take(900 << 20)"))
        assert len(container.told().processes) == 1


def test_a_process_whose_connection_broke_stays_charged_and_comes_back(container: Contained) -> None:
    with workers(container, 2) as (one, other):
        assert one.do("client.take(900 << 20)")
        one.do("client.close()")
        until(lambda: any(not process.connected for process in container.told().processes))
        assert not other.do("client.take(500 << 20)")
        with connected(container.socket) as stranger:
            stranger.send(wire.question(What.HELLO, body=wire.hello_body(one.do("client.token"))))
            packet = wire.read(stranger.recv(100))
            assert packet is not None
            assert packet.result == Result.UNKNOWN
        one.do("client.__setattr__('signals', None)")
        assert one.do("client.resume()") == Result.OK
        assert one.do("client.take(10 << 20)")


def test_a_second_broker_on_the_same_node_takes_over_only_when_the_first_is_gone(place: Isolated) -> None:
    """The kernel's lock decides; the first goes on unharmed."""
    argv = [sys.executable, "-P", "-m", "partage_isolation", f"--root={place.root}", "--driver-root=/root"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patience_s())
    assert done.returncode == 1
    assert "another broker of this node holds" in done.stdout + done.stderr
    place.told()


def test_the_control_socket_is_root_s_alone(place: Isolated) -> None:
    path = place.root / "run/partage/broker.sock"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o666)
    place.root.chmod(0o755)
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        _ask_as_nobody(path, tell)
    os.close(tell)
    answer = os.read(told, 1000)
    os.close(told)
    os.waitpid(pid, 0)
    path.chmod(0o600)
    assert b"only root" in answer


def _ask_as_nobody(path: Path, tell: int) -> None:
    try:
        os.setgid(65534)
        os.setuid(65534)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
            peer.send(b'{"ask":"tell"}\n')
            os.write(tell, peer.recv(1000))
    except OSError as error:
        os.write(tell, repr(error).encode())
    finally:
        os._exit(0)


def test_it_gives_a_sign_of_life_with_its_version(place: Isolated) -> None:
    alive = place.root / "run/partage/broker/alive"
    assert alive.read_text() == VERSION
    first = alive.stat().st_mtime_ns
    until(lambda: alive.stat().st_mtime_ns > first)


# ---- Under load ------------------------------------------------------------------------------------------------------


_LOAD: Final = Path(__file__).with_name("load_process.py")


def _is_right(container: Contained) -> bool:
    """All processes are back and have reported their memory."""
    told = container.told().processes
    return len(told) == 3 and all(process.connected for process in told)


@contextmanager
def load(container: Contained, count: int, *, most: int) -> Generator[list[subprocess.Popen[str]]]:
    """Processes that allocate and free memory continuously."""
    environment = {**container.place.node.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with ExitStack() as stack:
        running: list[subprocess.Popen[str]] = []
        for seed in range(count):
            argv = [sys.executable, "-P", str(_LOAD), str(container.socket), str(seed), str(most)]
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            stack.enter_context(process)
            stack.callback(process.kill)
            running.append(process)
        for process in running:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        yield running


def ended(process: subprocess.Popen[str]) -> list[int]:
    out, _ = process.communicate(timeout=patience_s())
    assert process.returncode == 0, process.returncode
    return [int(word) for word in out.split()]


class Watcher:
    """Watches the card continuously and records processes beyond their limit."""

    def __init__(self, place: Isolated, limit: int) -> None:
        self._place, self._limit = place, limit
        self._stop = threading.Event()
        self.looks = 0
        self.worst = 0
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.is_set():
            self.looks += 1
            self.worst = max(self.worst, self._place.node.status()[0].peak_bytes)
            time.sleep(0.02)


def test_killed_again_and_again_under_load_no_limit_is_exceeded_and_no_program_stops() -> None:
    limit = 1024 * MIB
    chance = random.Random(8)  # noqa: S311  chooses moments
    with isolated(cards=(card("t4", memory_mib=8192, reserved_mib=100, context_mib=64),)) as place:
        container = place.prepare(limit)
        with load(container, 3, most=300 * MIB) as running, Watcher(place, limit) as watcher:
            place.node.control("peaks reset")
            for _ in range(KILLS):
                time.sleep(chance.random() * 0.3)
                place.broker.restart()
                until(lambda: _is_right(container))
            assert watcher.looks > KILLS
            done = [ended(process) for process in running]
        assert watcher.worst <= limit, f"{watcher.worst - limit} bytes beyond"
        for taken, given, _, again in done:
            assert taken >= KILLS / 2  # otherwise there was no load
            assert given >= KILLS / 4
            assert again >= KILLS / 2
        until(lambda: not container.told().processes)
        assert container.told().cards[0].charged_bytes == 0
        assert descriptors(place.broker.pid) < 60
