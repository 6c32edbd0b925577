"""No card is allocated twice, for any interleaving of two crishims, the runtime and its failures."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_crishim.decisions import Ending, Rewrite
from support.extent import examples
from unit.crishim.rules.allocations import CARD, GIB, OTHER_CARD, allocation, grant, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage

pytestmark = pytest.mark.slow


CAPACITY = 80 * GIB
Grants = tuple[tuple[str, int, int], ...]
Step = tuple[str, int, Grants]


@dataclass(frozen=True)
class InFlight:
    create: Create
    grants: Grants
    decision: Rewrite


class World:
    """The real state, and two crishims with their own view of it."""

    def __init__(self, root: Path) -> None:
        self.stage = Stage(root=root)
        self.crishims: list[Crishim] = [self.stage.crishim(), self.stage.crishim()]
        self.in_flight: list[InFlight] = []
        self.alive: dict[str, InFlight] = {}
        self.budgets: dict[str, Grants] = {}
        """Grants by pod, for pods whose containers use a budget; each may have any number of containers."""
        self.count = 0

    async def do(self, step: Step) -> None:
        what, number, grants = step
        if what in {"done", "failed", "lost"}:
            for flight in self.in_flight[: number % 3]:
                self._end(flight, what)
        elif what == "end":
            for gone in sorted(self.alive)[: number % 2]:
                del self.alive[gone], self.stage.runtime.listed[gone]
        elif what == "wait":
            self.stage.now_s += number
        else:
            await self._call(what, number, grants)
        self.check()

    async def _call(self, what: str, number: int, grants: Grants) -> None:
        crishim = self.crishims[number % 2]
        match what:
            case "ask":
                await self._ask(number, grants)
            case "join" if self.budgets:
                uid = sorted(self.budgets)[number % len(self.budgets)]
                await self._start(number, uid, self.budgets[uid])
            case "together":
                await asyncio.gather(*(self._ask(each, grants) for each in range(number + 2)))
            case "done while listing":
                self.stage.runtime.meanwhile = partial(self._end_first, self.in_flight[:1])
                self.stage.now_s += 61
                await self._ask(number, grants)
                self.stage.runtime.meanwhile = None
            case "list":
                await crishim.containerd.listing(fresh=True)
            case "collect":
                await crishim.collector.once()
            case "restart":
                self.crishims[number % 2] = self.stage.crishim()
            case _:
                return

    async def _ask(self, number: int, grants: Grants) -> None:
        """Add a pod; the containers of every second pod use a budget."""
        uid = f"p{self.count}"
        if self.count % 2:
            self.budgets[uid] = grants
        await self._start(number, uid, grants)

    async def _start(self, number: int, uid: str, grants: Grants) -> None:
        self.count += 1
        documents = [grant(card, share, memory) for card, share, memory in grants]
        name = f"c{self.count}"
        document = allocation(*documents, pod=uid, container=name)
        if uid in self.budgets:
            containers = {name: {"gpu": {"budget": "b"}}}
            document |= {"crit": ["budgets"], "budgets": {"b": {"gpu": documents}}, "containers": containers}
        create = Create(uid=uid, container=name, annotations=signed(document))
        decision = await self.crishims[number % 2].decided(create)
        if isinstance(decision, Rewrite):
            self.in_flight.append(InFlight(create, grants, decision))

    def _end_first(self, flights: list[InFlight]) -> None:
        for flight in flights:
            self._end(flight, "done")

    def _end(self, flight: InFlight, how: str) -> None:
        self.in_flight.remove(flight)
        if how in {"done", "lost"}:
            id_ = self.stage.create(flight.decision.message, flight.create)
            self.alive[id_] = flight
        endings = {"done": Ending.DONE, "failed": Ending.FAILED, "lost": Ending.UNKNOWN}
        flight.decision.ended(endings[how])

    def check(self) -> None:
        """All containers that live or may start fit together; all of one pod use the same grants."""
        held = {flight.create.uid: flight.grants for flight in (*self.alive.values(), *self.in_flight)}
        for card in (CARD, OTHER_CARD):
            on_card = [(share, memory) for grants in held.values() for each, share, memory in grants if each == card]
            assert sum(share for share, _ in on_card) <= 1000
            assert sum(memory for _, memory in on_card) <= CAPACITY


GRANT = st.tuples(st.sampled_from([CARD, OTHER_CARD]), st.sampled_from([0, 300, 500, 700]), st.integers(0, 60)).map(
    lambda each: (each[0], each[1], each[2] * GIB)
)
WHAT = st.sampled_from(
    [
        *("ask", "ask", "join", "join", "together", "list", "done while listing", "collect", "restart"),
        *("done", "done", "failed", "lost", "end", "wait"),
    ]
)
STEP = st.tuples(WHAT, st.integers(0, 5), st.lists(GRANT, min_size=1, max_size=2).map(tuple))


@settings(max_examples=examples(150))
@given(st.lists(STEP, min_size=4, max_size=40))
def test_capacity_is_never_exceeded_and_when_all_has_settled_all_of_it_can_be_had(steps: list[Step]) -> None:
    async def story(world: World) -> None:
        for step in steps:
            await world.do(step)
        for flight in world.in_flight:
            flight.decision.ended(Ending.FAILED)
        world.in_flight.clear()
        world.alive.clear()
        world.stage.runtime.listed.clear()
        world.stage.now_s += 1000  # reservations in doubt have expired
        await world.do(("ask", 0, ((CARD, 1000, CAPACITY), (OTHER_CARD, 1000, CAPACITY))))
        assert len(world.in_flight) == 1

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(World(Path(folder))))
