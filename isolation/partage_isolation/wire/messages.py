"""Root's requests to the broker and its responses, as types and as lines.

Pure. One JSON object each way, ended by a newline. An invalid line gives one `DecodeError`. Readers ignore unknown
fields, and every field added later has a default: plugin, broker and command line may be of different versions for a
while.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from partage_plugins.api.containers import Mount
from partage_plugins.api.engines import EngineId
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.kinds import Promise
from partage_plugins.api.limits import MAX_CARDS, WHOLE_MILLI, Bytes, Generation, Milli
from partage_plugins.api.names import (
    BudgetName,
    BudgetNameText,
    CardId,
    CardIdText,
    ContainerKeyText,
    ContainerNameText,
)
from partage_plugins.api.pods import Gang, PodRef
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError

ProcessState = Literal["live", "detached", "unconfirmed", "dead"]
"""Connected; alive without a connection; silent since the broker's restart; gone, its bytes perhaps not yet."""
BrokerLoss = Literal["free-run", "closed"]
"""Policy for launches while the broker is away: all pass, or none."""
LineStateName = Literal["closed", "lease", "sole", "free"]
"""Closed; open until a deadline; until another container wants the card; until another container joins."""
Sentence = Annotated[str, Meta(min_length=1, max_length=1024)]


class Prepare(Struct, frozen=True, kw_only=True, tag_field="ask", tag="prepare"):
    """A container is about to be created. Idempotent for the same key."""

    key: ContainerKeyText
    pod: PodRef
    container: ContainerNameText
    gen: Generation
    """A higher one than the broker knows for this key replaces limits; a lower one is rejected."""
    grants: Annotated[tuple[GpuGrant, ...], Meta(min_length=1, max_length=MAX_CARDS)]
    """At most one for each card; the budget's grants, where the container uses one."""
    budget: BudgetNameText | None = None
    """A budget of its pod: all containers that use it share these grants."""
    gang: Gang | None = None
    """Its pod's gang: containers of a gang get their time slices together, on different cards."""
    is_claim: bool = False
    """A claim instead of one container, named by `pod`: served until it is released and no container has it."""
    by_hook: bool = False
    """For a claim: no runtime lists its containers. Only those that `enter` reports before they start belong to it."""
    ends_with_last: bool = False
    """The first container that enters releases it."""
    engine_container: EngineId | None = None
    """For such a claim: the only container that may enter it; None for any."""


def one_for_each_card(grants: Iterable[GpuGrant]) -> tuple[GpuGrant, ...]:
    """Merge grants of the same card by addition, as crishim does; memory is movable if all of it is."""
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
    """Lower what a running container may use of a card, until it ends; None resets to the grant.

    Omitted values stay. For a container that uses a budget, the budget's limits are set.
    """

    key: ContainerKeyText
    card: CardIdText
    memory_bytes: Bytes | UnsetType | None = UNSET
    share_milli: Milli | UnsetType | None = UNSET
    limit_milli: Milli | UnsetType | None = UNSET


class Suspend(Struct, frozen=True, kw_only=True, tag_field="ask", tag="suspend"):
    """Move a container's memory off its card and give it no time slices, until it is resumed.

    Repeated requests return the progress.
    """

    key: ContainerKeyText
    is_on: bool = True
    """False resumes it."""


class Release(Struct, frozen=True, kw_only=True, tag_field="ask", tag="release"):
    """A claim is no longer needed: it ends once no container has its device. Idempotent."""

    key: ContainerKeyText


class Enter(Struct, frozen=True, kw_only=True, tag_field="ask", tag="enter"):
    """An engine's container starts, with a claim: sent by a hook, which runs before the container's program."""

    key: ContainerKeyText
    """Key of the claim."""
    container: EngineId
    pid: Annotated[int, Meta(ge=1)]
    """Its first process, in the node's pid namespace."""


class GetReport(Struct, frozen=True, kw_only=True, tag_field="ask", tag="tell"):
    pass


class Prepared(Struct, frozen=True, kw_only=True, tag_field="answer", tag="prepared"):
    """The container may be created, with these mounts."""

    mounts: tuple[Mount, ...]
    enforces: tuple[Promise, ...] = ("memory",)
    """Guarantees that will be in force, per this broker: plugin and broker may be of different versions."""
    budget: BudgetNameText | None = None
    """The budget that it uses; brokers without budgets never set this."""
    is_claim: bool = False
    """It is served as a claim; brokers without claims never set this."""
    by_hook: bool = False
    """Its containers must enter; brokers without hooks never set this."""
    engine_container: EngineId | None = None
    """The only container that may enter; a broker that would admit others never sets this."""


class Suspended(Struct, frozen=True, kw_only=True, tag_field="answer", tag="suspended"):
    is_on: bool
    resident_bytes: Bytes
    """Movable memory that is still on the card."""
    moved_bytes: Bytes
    is_done: bool
    """The requested state is reached."""


class Released(Struct, frozen=True, kw_only=True, tag_field="answer", tag="released"):
    is_over: bool
    """Nothing is left of it. False: a container may still have it; ask again later."""


class Entered(Struct, frozen=True, kw_only=True, tag_field="answer", tag="entered"):
    """The container may start its program."""


class LimitsSet(Struct, frozen=True, kw_only=True, tag_field="answer", tag="limits-set"):
    memory_bytes: Bytes
    charged_bytes: Bytes
    """May exceed the limit: nothing is taken away, but nothing more is given until it is below."""
    share_milli: Milli = 0
    limit_milli: Milli = WHOLE_MILLI


class ProcessCard(Struct, frozen=True, kw_only=True):
    """What one process holds of one card; a container's limits count all four amounts but `used_bytes`."""

    card: CardIdText
    used_bytes: Bytes
    """As the process reports it."""
    lent_bytes: Bytes
    """What it may hold without asking: its usage plus a little credit."""
    unproved_bytes: Bytes = 0
    """Reported as freed, but not yet confirmed by a sample."""
    overhead_bytes: Bytes = 0
    """Contexts and the like, which no program requested."""
    state: ProcessState = "live"


class ProcessReport(Struct, frozen=True, kw_only=True):
    """One process of a container that has connected to the broker."""

    pid: int
    """In the node's pid namespace."""
    connected: bool
    cards: tuple[ProcessCard, ...] = ()


class Parts(Struct, frozen=True, kw_only=True):
    """A fraction of a card's time, 0 to 1, over the last seconds."""

    s1: float
    s10: float
    s60: float


class TimeReport(Struct, frozen=True, kw_only=True):
    wanted: Parts
    """It held the card or waited for it."""
    got: Parts
    timeslices: int
    revocations: int
    """Time slices that were ended early for another container."""
    drains: int
    drain_seconds: float
    """Total time for which work was in flight after time slices."""
    overlaps: int
    """Time slices whose drain was abandoned with work in flight."""
    state: LineStateName
    is_waiting: bool
    processes: int
    """Processes that may launch on the card."""


class MigrationReport(Struct, frozen=True, kw_only=True):
    """State of its movable memory on a card."""

    resident_bytes: Bytes
    moved_bytes: Bytes
    """On the host, not on the card."""
    times: int
    """How often it had to leave."""
    seconds: float
    """Total time spent moving."""
    is_out: bool
    """It gets no time slices until it is back."""
    is_suspended: bool = False
    """It stays out until it is resumed."""


class CardHeld(Struct, frozen=True, kw_only=True):
    """What one container, or one budget, may hold of one card, and holds."""

    card: CardIdText
    granted_bytes: Bytes
    """Granted by its allocation."""
    limit_bytes: Bytes
    """In force: as granted, or lowered since."""
    charged_bytes: Bytes = 0
    used_bytes: Bytes = 0
    overhead_bytes: Bytes = 0
    refused: int = 0
    """How often a request was rejected at the limit."""
    driver_limit_bytes: Bytes | None = None
    """The driver's own limit; None where the driver holds none, as for a budget that several use."""
    share_milli: Milli = 0
    """In force: as granted, or lowered since."""
    limit_milli: Milli = WHOLE_MILLI
    granted_share_milli: Milli = 0
    granted_limit_milli: Milli = WHOLE_MILLI
    time: TimeReport | None = None
    """None: it is not metered."""
    moving: MigrationReport | None = None
    """None: its memory is not movable."""


class ContainerReport(Struct, frozen=True, kw_only=True):
    key: ContainerKeyText
    pod: PodRef
    container: ContainerNameText
    gen: Generation
    cards: tuple[CardHeld, ...] = ()
    """For a container that uses a budget: the budget's, identical for each of its containers."""
    processes: tuple[ProcessReport, ...] = ()
    budget: BudgetName | None = None
    """The budget of its pod that it uses."""
    is_claim: bool = False
    """Stands for all containers of a claim, which `pod` names."""
    engine_containers: tuple[str, ...] = ()
    """For a claim: engine ids of containers that entered it and have not ended."""


class CardReport(Struct, frozen=True, kw_only=True):
    """One card of the broker's containers, as last reported by the driver; None for what it did not report."""

    card: CardIdText
    index: int | None = None
    model: str | None = None
    memory_bytes: Bytes | None = None
    used_bytes: Bytes | None = None
    """By all processes, including ones unknown to the broker."""
    policy: str | None = None
    """The scheduling policy."""


class BrokerReport(Struct, frozen=True, kw_only=True, tag_field="answer", tag="told"):
    broker: str
    """Version of the broker."""
    library: str = ""
    """The folder of the library that new containers get."""
    enforces: tuple[Promise, ...] = ("memory",)
    policy: str | None = None
    """Policy of cards without one of their own; None from brokers that don't meter time."""
    compute_on_broker_loss: BrokerLoss = "free-run"
    cards: tuple[CardReport, ...] = ()
    containers: tuple[ContainerReport, ...] = ()
    findings: tuple[Sentence, ...] = ()
    """Open findings of the audit, newest first."""


class Rejection(Struct, frozen=True, kw_only=True, tag_field="answer", tag="no"):
    """A rejection, with one sentence that says why and what to do."""

    why: Sentence


Question = Prepare | SetLimits | Suspend | Release | Enter | GetReport
Answer = Prepared | LimitsSet | Suspended | Released | Entered | BrokerReport | Rejection


END: Final = b"\n"
MAX_QUESTION_BYTES: Final = 256 * 1024
"""Limit for a line including its end; enough for a grant of every card that a node may have."""
MAX_ANSWER_BYTES: Final = 16 << 20
"""Enough for all processes of all containers."""

_encoder: Final = msgspec.json.Encoder()
_questions: Final = Reader[Question]("question to the broker", Question)  # type: ignore[arg-type]  # a union is no class
_answers: Final = msgspec.json.Decoder[Answer](Answer)


def question_line(question: Question) -> bytes:
    return _encoder.encode(question) + END


def read_question(line: bytes) -> Question:
    """Decode a request; raises `DecodeError`."""
    return _questions.read(line.removesuffix(END))


def answer_line(answer: Answer) -> bytes:
    return _encoder.encode(answer) + END


def read_answer(line: bytes) -> Answer:
    """Decode a response; raises `DecodeError`."""
    try:
        answer: Answer = _answers.decode(line.removesuffix(END))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = line[:80].decode(errors="replace")
        raise DecodeError("answer of the broker", path="$", value=shown, allowed=str(error)) from None
    return answer
