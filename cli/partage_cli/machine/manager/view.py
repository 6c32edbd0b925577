"""How pods, grants and cards look to people who ask. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from partage_cli.machine.manager import life
from partage_cli.machine.manager.managed import ManagedPod
from partage_cli.machine.manager.pieces import Piece
from partage_cli.machine.manager.usage import Usage
from partage_cli.machine.pods.pod import Container
from partage_cli.machine.wire.messages import CardStatus, ContainerStatus, Grant, GrantStatus, PodStatus
from partage_isolation.wire.messages import CardHeld
from partage_oci.shortage import CardRoom
from partage_plugins.vocabulary import GPU, ContainerName, GpuGrant
from partage_plugins.vocabulary.claims import ClaimRecord, claim_device, claim_key

Indexes = Mapping[str, int]
"""Of cards, by id."""


def status_of(pod: ManagedPod, usage: Usage, indexes: Indexes) -> PodStatus:
    facts, spec = pod.facts, pod.record.pod.spec
    phase = life.phase_of(facts)
    has_ended = phase in {"exited", "stopped"}
    roles = [(each, True) for each in spec.init_containers] + [(each, False) for each in spec.containers]
    return PodStatus(
        name=pod.name,
        namespace=pod.record.pod.metadata.namespace,
        uid=pod.uid,
        phase=phase,
        created_ns=pod.record.created_ns,
        restart=pod.record.restart,
        address=pod.address,
        ports=tuple(port for each in spec.containers for port in each.ports if port.host_port is not None),
        exit_code=life.exit_code_of(facts) if has_ended else None,
        containers=tuple(_container(pod, facts, each, usage, indexes, init=init) for each, init in roles),
    )


def _container(  # noqa: PLR0913  one call
    pod: ManagedPod, facts: life.Facts, container: Container, usage: Usage, indexes: Indexes, *, init: bool
) -> ContainerStatus:
    name = container.name
    piece = pod.pieces.all.get(name)
    now = piece.now if piece else None
    seen = piece.seen if piece else None
    has_ended = seen is not None and seen.has_ended
    return ContainerStatus(
        name=name,
        image=container.image,
        init=init,
        state=_state(seen),
        exit_code=(life.LOST_CODE if seen.state == "lost" else seen.exit_code) if seen and has_ended else None,
        started_ns=now.started_ns if now else None,
        finished_ns=now.finished_ns if now and has_ended else None,
        restarts=max(0, life.restarts_of(facts, name)),
        why=pod.refusals.get(name) or pod.refusals.get(life.SANDBOX) or (_why(piece) if has_ended and piece else ""),
        grants=_grants(pod, name, usage, indexes),
    )


def _state(seen: life.Seen | None) -> Literal["created", "running", "exited", "waiting"]:
    if seen is None:
        return "waiting"
    return "exited" if seen.state == "lost" else seen.state


def _why(piece: Piece) -> str:
    return piece.now.message or ("" if piece.now.reason == "Completed" else piece.now.reason)


def _grants(pod: ManagedPod, name: str, usage: Usage, indexes: Indexes) -> tuple[Grant, ...]:
    if pod.seat.allocation is None:
        return ()
    piece = pod.pieces.all.get(name)
    found: list[Grant] = []
    container = ContainerName(name)
    budget = pod.seat.allocation.budgets_of(container).get(GPU.name)
    for grant in pod.seat.allocation.given(container, GPU):
        held = usage.of(pod.uid, name, piece.attempt, grant.card) if piece else None
        found.append(_grant(grant, held, indexes, budget))
    return tuple(found)


def _grant(grant: GpuGrant, held: CardHeld | None, indexes: Indexes, budget: str | None = None) -> Grant:
    return Grant(
        card=grant.card,
        index=indexes.get(grant.card),
        share_milli=held.share_milli if held else grant.share_milli,
        limit_milli=held.limit_milli if held else grant.limit_milli,
        memory_bytes=held.limit_bytes if held else grant.memory_bytes,
        used_bytes=held.used_bytes if held else None,
        got=held.time.got.s10 if held and held.time else None,
        budget=budget,
    )


def grant_status(record: ClaimRecord, usage: Usage, indexes: Indexes) -> GrantStatus:
    claim, key = record.claim, claim_key(record.claim.uid)
    return GrantStatus(
        name=claim.name,
        uid=claim.uid,
        device=claim_device(claim.uid),
        is_revoked=record.is_released,
        grants=tuple(_grant(each, usage.held.get((key, each.card)), indexes) for each in record.grants),
        containers=usage.engine_containers.get(key, ()),
    )


def cards_of(rooms: Iterable[CardRoom], usage: Usage) -> tuple[CardStatus, ...]:
    return tuple(
        CardStatus(
            id=room.card.id,
            index=room.card.index,
            model=room.card.model,
            memory_bytes=room.card.memory_bytes,
            health=room.card.health,
            given_milli=room.given_milli,
            given_bytes=room.given_bytes,
            used_bytes=usage.used_bytes.get(room.card.id),
        )
        for room in rooms
    )
