"""Questions of root to the broker and its answers, as types and as lines.

Pure. One JSON object each way, ended by a newline. A line that is neither gives one `DecodeError`. Readers ignore
fields that they do not know, and every field that is added later has a default: plugin, broker and people's tools may
be of different versions for a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary.containers import Mount
from partage_plugins.vocabulary.engines import EngineId
from partage_plugins.vocabulary.gpu import GpuGrant
from partage_plugins.vocabulary.kinds import Promise
from partage_plugins.vocabulary.limits import MAX_CARDS, WHOLE_MILLI, Bytes, Generation, Milli
from partage_plugins.vocabulary.names import (
    BudgetName,
    BudgetNameText,
    CardId,
    CardIdText,
    ContainerKeyText,
    ContainerNameText,
)
from partage_plugins.vocabulary.pods import Gang, PodRef

ProcessState = Literal["live", "detached", "unconfirmed", "dead"]
"""Connected; alive without a connection; silent since the broker was restarted; gone, its bytes perhaps not yet."""
BrokerLoss = Literal["free-run", "closed"]
"""What holds for launches while the broker is away: all go, or none."""
LeaseState = Literal["closed", "lease", "sole", "free"]
"""No; until a moment; until another container wants the card; until another container is there."""
Sentence = Annotated[str, Meta(min_length=1, max_length=1024)]


class Prepare(Struct, frozen=True, kw_only=True, tag_field="ask", tag="prepare"):
    """A container is about to be created. Asked again for the same key, the answer is the same."""

    key: ContainerKeyText
    pod: PodRef
    container: ContainerNameText
    gen: Generation
    """A higher one than the broker knows for this key replaces limits; a lower one is refused."""
    grants: Annotated[tuple[GpuGrant, ...], Meta(min_length=1, max_length=MAX_CARDS)]
    """At most one for each card; of its budget, where it uses one."""
    budget: BudgetNameText | None = None
    """Of its pod: all containers that use it have these grants together."""
    gang: Gang | None = None
    """Of its pod: containers of one have their leases together, on different cards."""
    is_claim: bool = False
    """Not one container but a claim, which `pod` names: served until it is released and nobody has it any more."""
    by_hook: bool = False
    """Of a claim: no runtime lists its containers. Each is told by `enter` before it begins, and nobody else is one."""
    ends_with_last: bool = False
    """It is released by the first container that enters."""
    engine_container: EngineId | None = None
    """Of such a claim: the only container that may enter it; None: any."""


def one_for_each_card(grants: Iterable[GpuGrant]) -> tuple[GpuGrant, ...]:
    """Several of one card add up, as they do where crishim counts them; memory moves where all of it may."""
    cards = dict[CardId, GpuGrant]()
    for grant in grants:
        before = cards.get(grant.card)
        cards[grant.card] = grant if before is None else _together(before, grant)
    return tuple(cards.values())


def _together(one: GpuGrant, other: GpuGrant) -> GpuGrant:
    return msgspec.structs.replace(
        one,
        share_milli=min(one.share_milli + other.share_milli, WHOLE_MILLI),
        limit_milli=min(one.limit_milli + other.limit_milli, WHOLE_MILLI),
        memory_bytes=one.memory_bytes + other.memory_bytes,
        movable=one.movable and other.movable,
    )


class SetLimits(Struct, frozen=True, kw_only=True, tag_field="ask", tag="set-limits"):
    """Lower what a running container may have of a card, until it ends; None: what its grant says again.

    What is not named stays. Of a container that uses a budget it is the budget that is meant.
    """

    key: ContainerKeyText
    card: CardIdText
    memory_bytes: Bytes | UnsetType | None = UNSET
    share_milli: Milli | UnsetType | None = UNSET
    limit_milli: Milli | UnsetType | None = UNSET


class Suspend(Struct, frozen=True, kw_only=True, tag_field="ask", tag="suspend"):
    """Send a container's memory from its card, and let it have no turns, until it is told otherwise.

    Asked again, the answer is how far that is.
    """

    key: ContainerKeyText
    is_on: bool = True
    """False: it goes on."""


class Release(Struct, frozen=True, kw_only=True, tag_field="ask", tag="release"):
    """A claim is needed no longer: it ends once no container has its device. May be asked again."""

    key: ContainerKeyText


class Enter(Struct, frozen=True, kw_only=True, tag_field="ask", tag="enter"):
    """A container of an engine begins, with a claim: asked by a hook, which runs before the container's program."""

    key: ContainerKeyText
    """The claim's."""
    container: EngineId
    pid: Annotated[int, Meta(ge=1)]
    """Of its first process, as the node has it."""


class Tell(Struct, frozen=True, kw_only=True, tag_field="ask", tag="tell"):
    pass


class Prepared(Struct, frozen=True, kw_only=True, tag_field="answer", tag="prepared"):
    """The container may be created, with these."""

    mounts: tuple[Mount, ...]
    enforces: tuple[Promise, ...] = ("memory",)
    """What will be in force in it: this broker's word, since plugin and broker may be of different versions."""
    budget: BudgetNameText | None = None
    """That it uses; a broker that knows of none never says one."""
    is_claim: bool = False
    """It is served as one; a broker that knows of none never says so."""
    by_hook: bool = False
    """Its containers must enter; a broker that knows of no hooks never says so."""
    engine_container: EngineId | None = None
    """That alone may enter; a broker that would let in others never says one."""


class Suspended(Struct, frozen=True, kw_only=True, tag_field="answer", tag="suspended"):
    is_on: bool
    resident_bytes: Bytes
    """Still on the card, of what can leave it."""
    moved_bytes: Bytes
    is_done: bool
    """What was asked for is so."""


class Released(Struct, frozen=True, kw_only=True, tag_field="answer", tag="released"):
    is_over: bool
    """Nothing is left of it here. False: somebody may have it still; ask again later."""


class Entered(Struct, frozen=True, kw_only=True, tag_field="answer", tag="entered"):
    """The container may begin its program."""


class LimitsSet(Struct, frozen=True, kw_only=True, tag_field="answer", tag="limits-set"):
    memory_bytes: Bytes
    charged_bytes: Bytes
    """More than the limit: nothing is taken away, but nothing more is given until it is below."""
    share_milli: Milli = 0
    limit_milli: Milli = WHOLE_MILLI


class ProcessCard(Struct, frozen=True, kw_only=True):
    """What one process holds of one card; the limits of a container count all four amounts but `used_bytes`."""

    card: CardIdText
    used_bytes: Bytes
    """By its own account."""
    lent_bytes: Bytes
    """What it may hold without asking: what it uses and a little credit."""
    unproved_bytes: Bytes = 0
    """Said to be freed, and not yet seen to be."""
    overhead_bytes: Bytes = 0
    """Contexts and the like, which no program asked for."""
    state: ProcessState = "live"


class ProcessTold(Struct, frozen=True, kw_only=True):
    """One process of a container that has spoken to the broker."""

    pid: int
    """As the node has it."""
    connected: bool
    cards: tuple[ProcessCard, ...] = ()


class Parts(Struct, frozen=True, kw_only=True):
    """A part of a card's time, 0 to 1, over the last seconds."""

    s1: float
    s10: float
    s60: float


class TimeTold(Struct, frozen=True, kw_only=True):
    wanted: Parts
    """It held the card or waited for it."""
    got: Parts
    leases: int
    revocations: int
    """Leases that ended before their time, for another container."""
    drains: int
    drain_seconds: float
    """How long work was still under way after leases, in all."""
    overlaps: int
    """Leases whose work was not waited for any longer."""
    state: LeaseState
    is_waiting: bool
    processes: int
    """That may launch there."""


class MovingTold(Struct, frozen=True, kw_only=True):
    """Of what it holds of a card and can leave that."""

    resident_bytes: Bytes
    moved_bytes: Bytes
    """On the host, not on the card."""
    times: int
    """How often it had to leave."""
    seconds: float
    """On the way, in all."""
    is_out: bool
    """It has no turns before it is back."""
    is_suspended: bool = False
    """It stays out until it is resumed."""


class CardHeld(Struct, frozen=True, kw_only=True):
    """What one container, or one budget, may hold of one card, and holds."""

    card: CardIdText
    granted_bytes: Bytes
    """By its allocation."""
    limit_bytes: Bytes
    """In force: as granted, or lowered since."""
    charged_bytes: Bytes = 0
    used_bytes: Bytes = 0
    overhead_bytes: Bytes = 0
    refused: int = 0
    """How often more was asked for than the limit allows."""
    driver_limit_bytes: Bytes | None = None
    """What the driver itself lets it have; None: it holds no limit here, or none for a budget that several use."""
    share_milli: Milli = 0
    """In force: as granted, or lowered since."""
    limit_milli: Milli = WHOLE_MILLI
    granted_share_milli: Milli = 0
    granted_limit_milli: Milli = WHOLE_MILLI
    time: TimeTold | None = None
    """None: it is not metered."""
    moving: MovingTold | None = None
    """None: its memory stays where it is."""


class ContainerTold(Struct, frozen=True, kw_only=True):
    key: ContainerKeyText
    pod: PodRef
    container: ContainerNameText
    gen: Generation
    cards: tuple[CardHeld, ...] = ()
    """Of a container that uses a budget: the budget's, told the same of each of its containers."""
    processes: tuple[ProcessTold, ...] = ()
    budget: BudgetName | None = None
    """Of its pod."""
    is_claim: bool = False
    """All containers of a claim, which `pod` names."""
    engine_containers: tuple[str, ...] = ()
    """Of a claim: those that entered it and have not ended, by their engine's ids."""


class CardTold(Struct, frozen=True, kw_only=True):
    """One card that containers of the broker have, as the driver last told of it; None: it did not."""

    card: CardIdText
    index: int | None = None
    model: str | None = None
    memory_bytes: Bytes | None = None
    used_bytes: Bytes | None = None
    """By all processes, whether the broker knows them or not."""
    policy: str | None = None
    """Who gets its time."""


class Told(Struct, frozen=True, kw_only=True, tag_field="answer", tag="told"):
    broker: str
    """Its version."""
    library: str = ""
    """The folder of the library that new containers get."""
    enforces: tuple[Promise, ...] = ("memory",)
    policy: str | None = None
    """Of cards that have none of their own; None: a broker that knows nothing of time."""
    compute_on_broker_loss: BrokerLoss = "free-run"
    cards: tuple[CardTold, ...] = ()
    containers: tuple[ContainerTold, ...] = ()
    findings: tuple[Sentence, ...] = ()
    """What the audit found wrong and what still is, newest first."""


class No(Struct, frozen=True, kw_only=True, tag_field="answer", tag="no"):
    """It can't be, and why: one sentence that says what to do."""

    why: Sentence


Question = Prepare | SetLimits | Suspend | Release | Enter | Tell
Answer = Prepared | LimitsSet | Suspended | Released | Entered | Told | No


END: Final = b"\n"
MAX_QUESTION_BYTES: Final = 256 * 1024
"""Of a line, its end included; room for a grant of every card that a node may have."""
MAX_ANSWER_BYTES: Final = 16 << 20
"""Room for all processes of all containers."""

_encoder: Final = msgspec.json.Encoder()
_questions: Final = Reader[Question]("question to the broker", Question)  # type: ignore[arg-type]  # a union is no class
_answers: Final = msgspec.json.Decoder[Answer](Answer)


def question_line(question: Question) -> bytes:
    return _encoder.encode(question) + END


def read_question(line: bytes) -> Question:
    """What a client sent; raises `DecodeError`."""
    return _questions.read(line.removesuffix(END))


def answer_line(answer: Answer) -> bytes:
    return _encoder.encode(answer) + END


def read_answer(line: bytes) -> Answer:
    """What the broker sent; raises `DecodeError`."""
    try:
        answer: Answer = _answers.decode(line.removesuffix(END))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = line[:80].decode(errors="replace")
        raise DecodeError("answer of the broker", path="$", value=shown, allowed=str(error)) from None
    return answer
