"""Who is at the other end: told apart from all others, by the kernel's word alone."""

from __future__ import annotations

import os
import signal
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.peers import (
    NoProcess,
    components_of,
    has_ended,
    is_within,
    namespace_of,
    peer_named,
    peer_of,
    pids_of,
    start_of,
)
from partage_isolation.ledger.budget import Process
from partage_isolation.wire.answers import pid_for
from partage_isolation.wire.connection import Session
from partage_plugins.vocabulary.names import ContainerKey

ID = "4f" * 32


def test_the_other_end_of_a_connection_is_known() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        peer = peer_of(ours)
    assert (peer.pid, peer.start) == (os.getpid(), start_of(os.getpid()))
    assert not has_ended(peer.pidfd)
    os.close(peer.pidfd)


def test_a_process_that_has_ended_is_nobody() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert start_of(pid) is None
    with pytest.raises(NoProcess):
        peer_named(pid)


def test_its_end_is_heard_of() -> None:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    peer = peer_named(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert has_ended(peer.pidfd)
    os.close(peer.pidfd)


@pytest.mark.parametrize(
    "text",
    [
        f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n",
        f"12:memory:/kubepods/besteffort/pod1/{ID}\n11:cpu,cpuacct:/\n",
        f"0::/system.slice/crio-{ID}.scope\n",
        f"1:name=systemd:/docker/{ID}/init\n0::/\n",
    ],
)
def test_the_runtime_s_id_is_found_in_control_groups_of_either_version(text: str) -> None:
    assert is_within(components_of(text), ID)
    assert not is_within(components_of(text), "5a" * 32)


@pytest.mark.parametrize("near", [ID[:-1], ID + "0", ID[1:], "4f"])
def test_a_part_of_an_id_is_not_the_id(near: str) -> None:
    assert not is_within(components_of(f"0::/kubepods/cri-containerd-{ID}.scope"), near)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert not is_within(components_of(text), ID)


def session_of(*pids: int, namespace: int) -> Session:
    return Session(Process(ContainerKey("0" * 32), pids[0], 1, b""), pids=pids, namespace=namespace)


def test_pids_are_those_of_the_asker_s_namespace() -> None:
    inside, sibling = session_of(900, 7, namespace=2), session_of(901, 8, namespace=2)
    deeper, outside = session_of(902, 9, 1, namespace=3), session_of(903, namespace=1)
    other = session_of(904, 7, namespace=4)
    assert pid_for(inside, sibling) == 8
    assert pid_for(inside, deeper) == 9
    assert pid_for(outside, deeper) == 902
    assert pid_for(inside, outside) is None
    assert pid_for(inside, other) is None
    assert pid_for(deeper, inside) is None


def test_our_own_pids_and_namespace_are_read() -> None:
    assert pids_of(os.getpid())[0] == os.getpid()
    assert namespace_of(os.getpid()) == os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    assert (pids_of(2**22 + 1), namespace_of(2**22 + 1)) == ((), 0)
