"""Audits as stories: a node with one container, whose state may differ in each round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from partage_isolation.audit.facts import AmountFacts, CardLimits, CardUse, ContainerFacts, ProcessFacts, StateName
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.proofs import Birth
from partage_isolation.audit.suspicions import Round, Rules, Sight
from partage_isolation.audit.verdict import Memory, Verdict, audited
from partage_isolation.ledger.budget import CardSpec
from partage_plugins.api.names import BudgetName, CardId, ContainerKey, ContainerName, Namespace, PodName, PodUid
from partage_plugins.api.pods import PodRef

MIB = 1 << 20
CARD, OTHER_CARD = CardId("GPU-1"), CardId("GPU-2")
KEY, OTHER_KEY = ContainerKey("a" * 32), ContainerKey("b" * 32)
ID = "ab" * 32
POD = PodRef(namespace=Namespace("ns"), name=PodName("pod"), uid=PodUid("u1"))
BORN = Birth(100, 1)


def id_of(key: ContainerKey) -> str:
    return ID if key == KEY else f"c{key}"


def row(  # noqa: PLR0913  a story names what is special
    pid: int,
    lent: int,
    *,
    unproved: int = 0,
    overhead: int = 0,
    state: StateName = "live",
    connected: bool = True,
    spoken: bool = True,
    key: ContainerKey = KEY,
    card: CardId = CARD,
    hidden: int = 0,
) -> ProcessFacts:
    amounts = AmountFacts(used=lent, lent=lent, unproved=unproved, overhead=overhead, state=state, hidden=hidden)
    return ProcessFacts(
        pid=pid, start=100, key=key, connected=connected, cards={card: amounts}, state=state, has_spoken=spoken
    )


def container(
    *rows: ProcessFacts,
    limit: int = 1024 * MIB,
    key: ContainerKey = KEY,
    budget: BudgetName | None = None,
    refused: int = 0,
) -> ContainerFacts:
    charged = sum(amounts.charged for one in rows for amounts in one.cards.values())
    limits = CardLimits(CardSpec(id=CARD, memory=limit, share=500, limit=1000), charged, refused)
    return ContainerFacts(
        key=key,
        pod=POD,
        container=ContainerName("main"),
        gen=1,
        cards={CARD: limits},
        processes=tuple(rows),
        budget_name=budget,
    )


def sight(  # noqa: PLR0913  as below
    pid: int,
    *,
    key: ContainerKey | None = KEY,
    library: bool | None = True,
    wrong: tuple[str, ...] | None = (),
    born: Birth = BORN,
    too_long: tuple[str, ...] = (),
) -> Sight:
    return Sight(pid, born, None if key is None else id_of(key), key, library, wrong, too_long)


def listing_of(running: Mapping[ContainerKey, bool]) -> Listing:
    """A listing with one container per key."""
    return Listing(RuntimeContainer(id_of(key), key, None, runs) for key, runs in running.items())


def seen(  # noqa: PLR0913  as above
    *,
    books: ContainerFacts | tuple[ContainerFacts, ...] = (),
    uses: Mapping[int, int] | None = None,
    sights: tuple[Sight, ...] = (),
    first_seen: Mapping[str, Sight] | None = None,
    running: Mapping[ContainerKey, bool] | None = None,
    blind: bool = False,
    runtime_away: bool = False,
    before: ContainerFacts | None = None,
    folders: frozenset[ContainerKey] = frozenset(),
    gone: frozenset[int] = frozenset(),
) -> Round:
    """One round; the story sets the time."""
    after = {each.key: each for each in (books if isinstance(books, tuple) else (books,))}
    return Round(
        now_s=0.0,
        before=after if before is None else {before.key: before},
        after=after,
        uses={CARD: None if blind else CardUse(CARD, 1, uses or {})},
        listing=None if runtime_away else listing_of({KEY: True} if running is None else running),
        sights={one.pid: one for one in sights},
        first_seen=first_seen if first_seen is not None else {ID: sight(1)},
        folders=folders,
        gone=gone,
    )


@dataclass
class Story:
    """Consecutive rounds, a second apart."""

    rules: Rules = field(default_factory=Rules)
    memory: Memory = field(default_factory=Memory)
    now_s: float = 1000.0

    def then(self, one: Round, *, after_s: float = 1.0) -> Verdict:
        self.now_s += after_s
        self.memory, verdict = audited(self.memory, replace(one, now_s=self.now_s), self.rules)
        return verdict

    def kinds(self, *rounds: Round, after_s: float = 1.0) -> list[set[str]]:
        """The kinds of the findings of each round."""
        return [{one.kind for one in self.then(each, after_s=after_s).findings} for each in rounds]
