"""The library's sockets: whole packets, deadlines, and never a byte to a program's file of the same number."""

from __future__ import annotations

import array
import ctypes
import errno
import os
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.slow  # compiles

HERE: Final = Path(__file__).parent
BYTES: Final = 64
PACKET: Final = bytes(range(BYTES))
SHORT_MS: Final = 20
LONG_MS: Final = 10_000


class Socket(ctypes.Structure):
    _fields_ = (("descriptor", ctypes.c_int), ("device", ctypes.c_uint64), ("inode", ctypes.c_uint64))


class Library:
    """The library's sockets, with a connection of their own."""

    def __init__(self, loaded: ctypes.CDLL, path: Path) -> None:
        self._loaded = loaded
        self._path = str(path).encode()
        self.socket = Socket()

    def connect(self, ms: int = LONG_MS) -> int:
        return int(self._loaded.try_connect(ctypes.byref(self.socket), self._path, ms))

    def send(self, packet: bytes = PACKET, ms: int = LONG_MS) -> int:
        return int(self._loaded.try_send(ctypes.byref(self.socket), packet, ctypes.c_size_t(len(packet)), ms))

    def receive(self, ms: int = LONG_MS) -> tuple[int, bytes, int]:
        packet, descriptor = ctypes.create_string_buffer(BYTES), ctypes.c_int(-7)
        result = self._loaded.try_receive(
            ctypes.byref(self.socket), packet, ctypes.c_size_t(BYTES), ctypes.byref(descriptor), ms
        )
        return int(result), packet.raw, descriptor.value

    def disconnect(self) -> None:
        self._loaded.try_disconnect(ctypes.byref(self.socket))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    target = tmp_path_factory.mktemp("sockets") / "sockets.so"
    options = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *options, "-o", str(target), str(HERE / "sockets.c")], check=True)
    return ctypes.CDLL(str(target))


@pytest.fixture
def server(tmp_path: Path) -> Generator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(tmp_path / "broker"))
        server.listen(1)
        yield server


@pytest.fixture
def library(loaded: ctypes.CDLL, tmp_path: Path) -> Generator[Library]:
    library = Library(loaded, tmp_path / "broker")
    yield library
    library.disconnect()


@pytest.fixture
def peer(server: socket.socket, library: Library) -> Generator[socket.socket]:
    assert library.connect() == 0
    peer, _ = server.accept()
    with peer:
        yield peer


def test_packets_go_both_ways_whole(library: Library, peer: socket.socket) -> None:
    assert library.send() == 0
    assert peer.recv(2 * BYTES) == PACKET
    peer.send(PACKET)
    assert library.receive() == (0, PACKET, -1)


def test_its_descriptor_is_out_of_the_programs_way_and_closed_on_exec(library: Library, peer: socket.socket) -> None:
    assert peer.fileno() < 512 <= library.socket.descriptor
    assert not os.get_inheritable(library.socket.descriptor)


def test_it_waits_no_longer_than_its_deadline(library: Library, peer: socket.socket) -> None:
    assert library.receive(SHORT_MS)[0] == errno.ETIMEDOUT
    assert library.receive(0)[0] == errno.EAGAIN
    while library.send(ms=0) == 0:
        pass
    assert library.send(ms=SHORT_MS) == errno.ETIMEDOUT
    assert peer.recv(BYTES) == PACKET


def test_nobody_there_is_told_at_once_and_a_full_queue_at_the_deadline(
    library: Library, server: socket.socket, loaded: ctypes.CDLL, tmp_path: Path
) -> None:
    waiting = [Library(loaded, tmp_path / "broker") for _ in range(2)]
    assert [one.connect() for one in waiting] == [0, 0]
    assert library.connect(SHORT_MS) == errno.ETIMEDOUT
    for one in waiting:
        one.disconnect()
    server.close()
    assert library.connect() == errno.ECONNREFUSED
    (tmp_path / "broker").unlink()
    assert library.connect() == errno.ENOENT


@pytest.mark.parametrize("size", [1, BYTES - 1, BYTES + 1, 4096])
def test_a_packet_of_another_size_is_refused_whole(library: Library, peer: socket.socket, size: int) -> None:
    peer.send(bytes(size))
    peer.send(PACKET)
    assert library.receive()[0] == errno.EMSGSIZE
    assert library.receive()[:2] == (0, PACKET)


def test_the_end_is_told(library: Library, peer: socket.socket) -> None:
    peer.close()
    assert library.receive()[0] == errno.ECONNRESET
    assert library.send() == errno.EPIPE


def test_a_descriptor_comes_along_and_closes_on_exec(library: Library, peer: socket.socket) -> None:
    ours, theirs = os.pipe()
    peer.sendmsg([PACKET], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs]))])
    result, packet, descriptor = library.receive()
    assert (result, packet) == (0, PACKET)
    assert not os.get_inheritable(descriptor)
    os.write(descriptor, b"here")
    assert os.read(ours, 4) == b"here"
    for each in (ours, theirs, descriptor):
        os.close(each)


def test_descriptors_with_a_wrong_packet_and_too_many_are_closed(library: Library, peer: socket.socket) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    for packet, count in ((bytes(3), 1), (PACKET, 5)):
        peer.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs] * count))])
    os.close(theirs)
    assert library.receive()[0] == errno.EMSGSIZE
    result, _, descriptor = library.receive()
    if descriptor != -1:
        os.close(descriptor)
    assert (result, os.read(ours, 1)) == (0, b"")  # the other end is closed
    os.close(ours)


def test_what_a_program_opened_by_its_number_is_left_alone(library: Library, peer: socket.socket) -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        number = library.socket.descriptor
        os.dup2(one.fileno(), number)
        other.send(PACKET)
        assert library.send() == errno.EBADF
        assert library.receive()[0] == errno.EBADF
        library.disconnect()
        assert os.fstat(number).st_ino == os.fstat(one.fileno()).st_ino
        assert one.recv(BYTES) == PACKET
        os.close(number)
    assert peer.recv(BYTES) == b""


def test_a_descriptor_that_a_program_closed_is_noticed(library: Library, peer: socket.socket) -> None:
    os.close(library.socket.descriptor)
    assert library.send() == errno.EBADF
    assert library.receive()[0] == errno.EBADF
    assert peer.recv(BYTES) == b""
    assert library.connect() == 0
