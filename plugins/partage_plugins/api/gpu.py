"""The kind `gpu`: cards, a container's request for them, and the grant of one card to one container.

Memory is in bytes, compute in milli of one card. On the wire the contract's short field names are used; here units are
in the names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from partage_plugins.api.card_memory import CardMemory
from partage_plugins.api.health import CardHealth, HealthCause, State
from partage_plugins.api.kinds import KindType, Promise, Role
from partage_plugins.api.limits import MAX_CARDS, WHOLE_MILLI, Bytes, Milli, Small
from partage_plugins.api.names import CardId, CardIdText, Kind, Namespace, ShortText, TagText
from partage_plugins.api.topology import MAX_BUNDLES, Bundle

Pool = Literal["shared", "kubelet", "dra"]
"""Who allocates a card: our scheduler, kubelet's device manager, or the allocator of our DRA driver's claims."""
HANDED_OUT_BY: Final[Mapping[Pool, str]] = {"shared": "partage", "kubelet": "kubelet", "dra": "DRA"}
"""For messages."""
RESERVATIONS: Final = "partage-cards"
"""The namespace that holds only the pods which reserve kubelet's cards for us."""
MIB: Final = 1 << 20
NVLINK: Final = "nvlink"
PCIE: Final = "pcie"
NUMA: Final = "numa"
LEVELS: Final = (NVLINK, PCIE, NUMA)
"""The levels on which cards of one node can be close, the closest first: joined pairwise by NVLink, behind one PCIe
switch, on one NUMA node."""
CLOSEST: Final = "closest"
"""Stands for the closest of these levels on which some node of the cluster has that many cards."""
_HEALTH = r"\A(ok|lost|degraded: [^\x00-\x1f\x7f]{1,256})\Z"
_DEGRADED: Final = "degraded: "
_LONGEST_TAG: Final = 63
_REASON = r"\A[^\x00-\x1f\x7f]{1,256}\Z"
_CAPABILITIES = re.compile(r"([0-9]{1,3}\.[0-9]{1,3};)*", re.ASCII)
GPU_IN_WORDS: Final = {_HEALTH: "ok, lost, or degraded: and why"}

# Names and capabilities are checked further in one pass over all cards: a pattern for each card and field would be a
# third of the cost of decoding an inventory.
NameText = Annotated[str, Meta(min_length=1, max_length=128)]
CapabilityText = Annotated[str, Meta(min_length=3, max_length=7)]
HealthText = Annotated[str, Meta(pattern=_HEALTH)]
ReasonText = Annotated[str, Meta(pattern=_REASON)]


class Card(Struct, frozen=True, kw_only=True):
    """One GPU or MIG instance."""

    id: CardIdText
    index: Small
    model: NameText
    memory_bytes: Bytes = field(name="memory")
    """Usable memory: the total less the driver's own and the configured reserve."""
    compute_capability: CapabilityText = field(name="cc")
    pci: NameText
    numa_node: Small | None = field(name="numa", default=None)
    pcie_generation: Small | None = field(name="pcie", default=None)
    """Generation of the link between card and machine: the highest that both support."""
    pcie_switch: Small | None = field(name="switch", default=None)
    """Cards of a node with the same number are behind one PCIe switch, or several without a processor in between."""
    health: HealthText = "ok"
    """On the wire. Programs decide by `state` and `cause`, never by the text after `degraded: `."""
    lost_because: ReasonText | None = field(name="why", default=None)
    """Why a card is lost, for people."""
    cause: HealthCause | None = None
    """None for a card that is ok, and where an older writer gives no cause."""
    pool: Pool
    mig_profile: ShortText | None = field(name="mig", default=None)
    parent: CardIdText | None = None
    """The GPU that contains this MIG instance."""
    beyond_bytes: Bytes = field(name="beyond", default=0)
    """How much more than the card's memory the operator allows to be promised to movable containers."""
    reservation: NameText | None = None
    """`namespace/name` of the pod that reserved the card from kubelet for us, and holds it while the card is shared."""

    @property
    def state(self) -> State:
        """The part of `health` that programs decide by, beside `cause`."""
        return "ok" if self.health == "ok" else "lost" if self.is_lost else "degraded"

    @property
    def condition(self) -> CardHealth:
        """State, cause and sentence as one value."""
        why = self.health.removeprefix(_DEGRADED) if self.state == "degraded" else self.lost_because
        return CardHealth(self.state, self.cause, why)

    def being(self, health: CardHealth) -> Card:
        """The same card with another health."""
        is_lost, is_degraded = health.state == "lost", health.state == "degraded"
        return replace(
            self,
            health=f"{_DEGRADED}{health.why}" if is_degraded else health.state,
            lost_because=health.why if is_lost else None,
            cause=health.cause,
        )

    @property
    def capacity(self) -> CardMemory:
        """The capacity against which memory promises are checked."""
        return CardMemory(self.memory_bytes, self.beyond_bytes)

    @property
    def is_instance(self) -> bool:
        """Whether it is a MIG instance rather than a GPU."""
        return self.mig_profile is not None

    @property
    def is_lost(self) -> bool:
        """Whether no container may use it."""
        return self.health == "lost"

    @property
    def is_allocatable(self) -> bool:
        """Whether new pods may be given it: it is in our pool, and healthy."""
        return self.pool == "shared" and self.health == "ok"

    @property
    def is_claimable(self) -> bool:
        """Whether new claims may be given it, by the allocator of claims."""
        return self.pool == "dra" and self.health == "ok"


FIGURES: Final = ("numa_node", "pcie_generation", "pcie_switch")
"""Fields of a card that are NVML's figures unchanged, or None where the card does not report them."""
Cards = Annotated[tuple[Card, ...], Meta(max_length=MAX_CARDS)]
Links = Annotated[tuple[Annotated[tuple[Small, ...], Meta(max_length=MAX_CARDS)], ...], Meta(max_length=MAX_CARDS)]


class GpuPart(Struct, frozen=True, kw_only=True):
    """The cards of one node."""

    driver: ShortText
    cuda: ShortText
    cards: Cards
    links: Links = ()
    """NVLinks between card i and card j of `cards`; empty if unknown."""
    reservable: bool = False
    """Whether a card in kubelet's pool becomes shared on this node once a reservation holds it."""

    def __post_init__(self) -> None:
        count = len(self.cards)
        if self.links and {len(self.links), *map(len, self.links)} != {count}:
            raise ValueError(f"links must have {count} rows and columns, one for each card")
        if len({card.id for card in self.cards}) != count:
            raise ValueError("two cards have the same id")
        if not "".join([card.model + card.pci for card in self.cards]).isprintable():
            raise ValueError("a card's model or pci address has characters that cannot be printed")
        if not _CAPABILITIES.fullmatch("".join([f"{card.compute_capability};" for card in self.cards])):
            raise ValueError("a card's cc is not a version such as 9.0")

    def card(self, card_id: CardId) -> Card | None:
        """The card of that id, or None."""
        return next((card for card in self.cards if card.id == card_id), None)


class Tags(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Labels on a card, set by the grants on it."""

    affinity: TagText | None = None
    anti_affinity: TagText | None = field(name="anti-affinity", default=None)
    exclusion: TagText | None = None

    def in_namespace(self, namespace: Namespace) -> Tags:
        """The same labels qualified by this namespace, so that they differ from those of every other namespace."""
        return Tags(
            affinity=_qualified(namespace, self.affinity),
            anti_affinity=_qualified(namespace, self.anti_affinity),
            exclusion=_qualified(namespace, self.exclusion),
        )


def _qualified(namespace: Namespace, tag: str | None) -> str | None:
    """`namespace.tag`, which is unique since a namespace has no dot; a digest of it where that is too long."""
    if tag is None:
        return None
    text = f"{namespace}.{tag}"
    return text if len(text) <= _LONGEST_TAG else sha256(text.encode()).hexdigest()[:_LONGEST_TAG]


NO_TAGS: Final = Tags()
Bundles = Annotated[tuple[Bundle, ...], Meta(max_length=MAX_BUNDLES)]


def is_named(model: str, names: Collection[str]) -> bool:
    """Hyphens may replace its spaces, as in `nvidia.com/gpu.product` and all labels, which can't have spaces."""
    return model in names or model.replace(" ", "-") in names


class GpuRequest(Struct, frozen=True, kw_only=True):
    """One container's request; all amounts are for each card."""

    count: Small = 1
    share_milli: Milli = 0
    limit_milli: Milli = WHOLE_MILLI
    memory_bytes: Bytes | None = None
    """None: a part of a card's memory, as computed by `memory_on`."""
    memory_milli: Milli | None = None
    """That part, in milli; None: the same as the share."""
    movable: bool = False
    """Its memory may be moved to main memory while others have their turn on the card."""
    tags: Tags = NO_TAGS
    models: tuple[str, ...] = ()
    models_not: tuple[str, ...] = ()
    model_parts: tuple[str, ...] = ()
    """The model's name must contain one of them, regardless of case."""
    model_parts_not: tuple[str, ...] = ()
    instances: bool | None = None
    """True: only MIG instances; False: only whole GPUs; None: either."""
    least_card_bytes: Bytes = 0
    """Only cards with at least this much memory in total, regardless of how much is requested."""
    cards: tuple[CardId, ...] = ()
    cards_not: tuple[CardId, ...] = ()
    policy: str | None = None
    repeats_cards: bool = False
    """Several of its grants may be on one card; otherwise each is on a different one."""
    idle_cards: bool = False
    """Only cards that hold nothing when it is placed; others may be placed there later."""
    spare_share: bool = False
    """Only cards that have some share left, even if it requests none."""
    bundles: Bundles = ()
    """Which of its cards must be close, on one of `LEVELS` or on `CLOSEST`."""
    is_claim: bool = False
    """It belongs to a claim, which gets cards of the pool `dra` only; all other requests get cards of the pool `shared`
    only."""

    @property
    def memory_follows_share(self) -> bool:
        """Whether it gets the same fraction of a card's memory as of its time."""
        return self.memory_bytes is None and self.memory_milli is None

    @property
    def least_share_milli(self) -> int:
        """How much share a card must have left."""
        return self.share_milli or int(self.spare_share)

    def memory_on(self, total_bytes: int) -> int:
        """Bytes on a card with that much memory: as requested, or a fraction rounded down to 1 MiB."""
        if self.memory_bytes is not None:
            return self.memory_bytes
        milli = self.share_milli if self.memory_milli is None else self.memory_milli
        return total_bytes * milli // WHOLE_MILLI // MIB * MIB

    def wants_model(self, model: str) -> bool:
        if (self.models and not is_named(model, self.models)) or is_named(model, self.models_not):
            return False
        return not (self.model_parts or self.model_parts_not) or self._wants_parts_of(model.upper())

    def wants_instance(self, is_instance: bool) -> bool:  # noqa: FBT001  the one thing it asks
        return self.instances is None or self.instances == is_instance

    def may_have(self, card: Card) -> bool:
        """Whether the card's pool and health allow it to be given to such a request."""
        return card.is_claimable if self.is_claim else card.is_allocatable

    def wants_id(self, card: Card) -> bool:
        """Whether the card's id is among the requested ones; a GPU's id also names the MIG instances on it."""
        ids = {card.id, card.parent}
        return (not self.cards or not ids.isdisjoint(self.cards)) and ids.isdisjoint(self.cards_not)

    def wants(self, card: Card) -> bool:
        """Whether the card itself matches the request, regardless of what is on it."""
        is_wanted = self.wants_model(card.model) and self.wants_instance(card.is_instance) and self.wants_id(card)
        return is_wanted and card.memory_bytes >= self.least_card_bytes

    def _wants_parts_of(self, model: str) -> bool:
        if self.model_parts and not any(part.upper() in model for part in self.model_parts):
            return False
        return not any(part.upper() in model for part in self.model_parts_not)


class GpuGrant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One card given to one container."""

    card: CardIdText
    share_milli: Milli = field(name="share")
    limit_milli: Milli = field(name="limit")
    memory_bytes: Bytes = field(name="memory")
    movable: bool = False
    """Its memory is moved to main memory, within the container's own limit there, while others have their turn."""
    tags: Tags = NO_TAGS
    role: Role = "app"
    """The container's role: init containers use the same memory and share before the others do."""

    def __post_init__(self) -> None:
        if self.limit_milli < self.share_milli:
            raise ValueError(f"limit {self.limit_milli} is below share {self.share_milli}")


def larger(one: GpuGrant, other: GpuGrant) -> GpuGrant:
    """The first grant, with the larger of each amount."""
    return replace(
        one,
        share_milli=max(one.share_milli, other.share_milli),
        limit_milli=max(one.limit_milli, other.limit_milli),
        memory_bytes=max(one.memory_bytes, other.memory_bytes),
    )


def promises_of(grant: GpuGrant, part: GpuPart | None) -> frozenset[Promise]:
    """What the node must enforce to protect the card's other holders. A card that is not known counts as shared."""
    card = part.card(grant.card) if part else None
    promised: set[Promise] = set()
    if card is None or grant.movable or grant.memory_bytes < card.memory_bytes:
        promised.add("memory")
    if grant.movable:
        promised.add("movable")
    if grant.share_milli < WHOLE_MILLI:
        promised.add("share")
    if grant.limit_milli < WHOLE_MILLI:
        promised.add("limit")
    return frozenset(promised)


def on_every_card(wanted: GpuRequest, role: Role, part: GpuPart) -> tuple[GpuGrant, ...]:
    """The grants counted for a request whose cards are not known: on each card, the most it can have of any one.

    None of them counts as movable, since an unknown holder is never moved. Anti-affinity and exclusion tags are kept,
    so that they keep others off; the affinity is dropped, so that it draws no others to cards where they may not be.
    """
    times = wanted.count if wanted.repeats_cards else 1
    share = min(times * wanted.share_milli, WHOLE_MILLI)
    return tuple(
        GpuGrant(
            card=card.id,
            share_milli=share,
            limit_milli=max(share, wanted.limit_milli),
            memory_bytes=min(times * wanted.memory_on(card.memory_bytes), card.memory_bytes),
            tags=replace(wanted.tags, affinity=None),
            role=role,
        )
        for card in part.cards
    )


def in_namespace(wanted: GpuRequest, namespace: Namespace) -> GpuRequest:
    """The request with its tags qualified by this namespace, so that it has no effect on other tenants' pods."""
    return wanted if wanted.tags == NO_TAGS else replace(wanted, tags=wanted.tags.in_namespace(namespace))


GPU: Final = KindType(
    name=Kind("gpu"),
    request=GpuRequest,
    grant=GpuGrant,
    part=GpuPart,
    promises=promises_of,
    everywhere=on_every_card,
    in_namespace=in_namespace,
)
