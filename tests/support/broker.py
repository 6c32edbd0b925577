"""A fake broker's control socket, with answers that a test chooses; raw bytes break the protocol."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from partage_isolation.wire.messages import (
    Answer,
    BrokerReport,
    CardHeld,
    CardReport,
    ContainerReport,
    Parts,
    Prepare,
    Prepared,
    ProcessCard,
    ProcessReport,
    Question,
    Rejection,
    TimeReport,
    answer_line,
    read_question,
)
from partage_plugins.api import CardId, ContainerName, Mount, Namespace, PodName, PodRef, PodUid
from partage_plugins.api.places import BROKER_SOCKET
from partage_plugins.codecs import container_key
from support.sockets import LineServer

CARD: Final = CardId("GPU-5a1e3c8e-0f0b-4d2a-9c11-0123456789ab")
GIB: Final = 1 << 30
Answering = Answer | bytes | Callable[[Question], Answer | bytes]
"""One answer to every question, or the answer to each."""


def prepared(question: Prepare) -> Prepared:
    folder = f"/run/partage/containers/{question.key}"
    return Prepared(
        mounts=(
            Mount(container_path="/run/partage", host_path=folder),
            Mount(container_path="/run/partage/lib", host_path="/usr/local/lib/partage/0.1.0"),
            Mount(container_path="/etc/ld.so.preload", host_path=f"{folder}/preload"),
        )
    )


def usual(question: Question) -> Answer:
    return prepared(question) if isinstance(question, Prepare) else Rejection(why="not in this test")


def pod(name: str = "train-0", namespace: str = "team-a") -> PodRef:
    return PodRef(namespace=Namespace(namespace), name=PodName(name), uid=PodUid(f"uid-of-{namespace}-{name}"))


def held(
    card: CardId = CARD,
    *,
    limit_bytes: int = 8 * GIB,
    charged_bytes: int = 5 * GIB,
    refused: int = 0,
    time: TimeReport | None = None,
) -> CardHeld:
    """A container's use of a card, of which it was granted 8 GiB."""
    overhead_bytes = min(charged_bytes, GIB // 2)
    return CardHeld(
        card=card,
        granted_bytes=8 * GIB,
        limit_bytes=limit_bytes,
        charged_bytes=charged_bytes,
        used_bytes=charged_bytes - overhead_bytes,
        overhead_bytes=overhead_bytes,
        refused=refused,
        share_milli=500,
        granted_share_milli=500,
        time=time,
    )


def time_told(wanted: float, got: float) -> TimeReport:
    """A container that wants and gets these parts of a card's time in every window."""
    return TimeReport(
        wanted=Parts(s1=wanted, s10=wanted, s60=wanted),
        got=Parts(s1=got, s10=got, s60=got),
        timeslices=9,
        revocations=1,
        drains=8,
        drain_seconds=0.25,
        overlaps=0,
        state="lease",
        is_waiting=False,
        processes=1,
    )


def container(ref: PodRef, *cards: CardHeld, name: str = "main", pids: Sequence[int] = (4711,)) -> ContainerReport:
    amounts = tuple(
        ProcessCard(card=each.card, used_bytes=each.used_bytes, lent_bytes=each.used_bytes) for each in cards
    )
    return ContainerReport(
        key=container_key(ref.uid, ContainerName(name), 0),
        pod=ref,
        container=ContainerName(name),
        gen=1,
        cards=cards,
        processes=tuple(ProcessReport(pid=pid, connected=True, cards=amounts) for pid in pids),
    )


def told(*containers: ContainerReport, findings: tuple[str, ...] = (), library: str = "") -> BrokerReport:
    """The report of a node with one card."""
    used_bytes = sum(card.charged_bytes for each in containers for card in each.cards)
    card = CardReport(card=CARD, index=0, model="NVIDIA H100 80GB HBM3", memory_bytes=80 * GIB, used_bytes=used_bytes)
    return BrokerReport(broker="0.1.0", library=library, cards=(card,), containers=containers, findings=findings)


class FakeBroker(LineServer):
    """Listens below a node's root until it is closed; records the questions."""

    def __init__(self, root: Path, answering: Answering = usual) -> None:
        self.answering: Answering = answering
        self.asked: list[Question] = []
        super().__init__(root / BROKER_SOCKET)

    def answer(self, line: bytes, peer: socket.socket) -> bytes:
        del peer
        question = read_question(line)
        self.asked.append(question)
        answer = self.answering(question) if callable(self.answering) else self.answering
        return answer if isinstance(answer, bytes) else answer_line(answer)
