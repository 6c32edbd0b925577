"""What a create would have to wait for is known before it comes, where kubelet's calls announce it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from partage_base.cri import ListedSandbox, PeerAway, RuntimeClient
from partage_crishim.containerd import Containerd
from partage_crishim.foreseeing import WITHIN_S, Foresight
from partage_crishim.verdicts import CREATE_CONTAINER, IMAGE_STATUS, RUN_SANDBOX, SANDBOX_STATUS, STATUS
from partage_plugins.errors import PluginFailed
from unit.crishim.deciding.stage import NOWHERE


class Runtime(RuntimeClient):
    """Has these sandboxes, and counts its questions."""

    def __init__(self) -> None:
        super().__init__(NOWHERE)
        self.handlers: dict[str, str] = {}
        self.asked = 0
        self.away = False

    async def containers(self) -> tuple[()]:
        return ()

    async def sandboxes(self, besides: Collection[str] = ()) -> tuple[ListedSandbox, ...]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.away:
            raise PeerAway("containerd.sock", "is not there")
        return tuple(
            ListedSandbox(id=id_, pod_uid="u", runtime_handler=name, annotations={"of": id_})
            for id_, name in self.handlers.items()
            if id_ not in besides
        )

    async def sandbox(self, sandbox_id: str) -> ListedSandbox | None:
        raise AssertionError(f"a create waited for the handler of {sandbox_id}")


class Kubelet:
    """Its calls, as crishim sees them go by."""

    def __init__(self, *, wanted: bool = True) -> None:
        self.now_s = 0.0
        self.runtime = Runtime()
        self.containerd = Containerd(self.runtime)
        self.expected: list[Mapping[str, str]] = []
        self.grants = 0
        """Of each new pod."""
        self.rehearsals = 0
        self.looks = 0
        self.plugin_waits: asyncio.Event | None = None
        self.foresight = Foresight(
            self.containerd,
            wanted=lambda: wanted,
            expected=self._expects,
            rehearse=self._rehearse,
            look_ahead=self._look_ahead,
            clock=lambda: self.now_s,
        )

    def _expects(self, annotations: Mapping[str, str]) -> int:
        self.expected.append(annotations)
        return self.grants

    def _rehearse(self) -> None:
        self.rehearsals += 1

    async def _look_ahead(self) -> None:
        self.looks += 1
        if self.plugin_waits is not None:
            await self.plugin_waits.wait()
        raise PluginFailed("gpu", "partage_expected", "raised OSError")

    async def calls(self, *methods: str) -> None:
        for method in methods:
            self.foresight.note(method)
            for _ in range(5):
                await asyncio.sleep(0)

    async def runs(self, sandbox: str, handler: str = "") -> None:
        await self.calls(RUN_SANDBOX)
        self.runtime.handlers[sandbox] = handler
        await self.calls(SANDBOX_STATUS)


@asynccontextmanager
async def speaking(*, wanted: bool = True) -> AsyncGenerator[Kubelet]:
    kubelet = Kubelet(wanted=wanted)
    yield kubelet
    await kubelet.foresight.close()


def holds(what: Callable[[Kubelet], Awaitable[None]], *, wanted: bool = True) -> None:
    async def whole() -> None:
        async with speaking(wanted=wanted) as kubelet:
            await what(kubelet)

    asyncio.run(whole())


def test_the_handler_of_a_new_sandbox_is_known_when_its_containers_are_made() -> None:
    async def it(kubelet: Kubelet) -> None:
        await kubelet.runs("a", "kata")
        assert await kubelet.containerd.handler("a") == "kata"

    holds(it)


def test_the_runtime_is_asked_once_for_a_sandbox_and_never_without_a_new_one() -> None:
    async def it(kubelet: Kubelet) -> None:
        await kubelet.calls(STATUS, SANDBOX_STATUS, CREATE_CONTAINER, SANDBOX_STATUS)
        assert kubelet.runtime.asked == 0
        await kubelet.runs("a")
        await kubelet.calls(SANDBOX_STATUS, SANDBOX_STATUS, STATUS)
        assert kubelet.runtime.asked == 1

    holds(it)


def test_of_two_sandboxes_at_once_both_are_learnt() -> None:
    async def it(kubelet: Kubelet) -> None:
        await kubelet.calls(RUN_SANDBOX)
        await kubelet.runs("a", "one")
        await kubelet.runs("b", "two")
        kubelet.runtime.handlers["c"] = "three"
        await kubelet.calls(SANDBOX_STATUS)
        assert [await kubelet.containerd.handler(id_) for id_ in "abc"] == ["one", "two", "three"]

    holds(it)


def test_annotations_of_each_new_pod_are_shown_once() -> None:
    async def it(kubelet: Kubelet) -> None:
        await kubelet.runs("a")
        await kubelet.runs("b")
        assert kubelet.expected == [{"of": "a"}, {"of": "b"}]

    holds(it)


def test_a_create_with_a_grant_is_rehearsed_before_it_comes_and_no_other() -> None:
    async def it(kubelet: Kubelet) -> None:
        await kubelet.runs("a")
        await kubelet.calls(IMAGE_STATUS, CREATE_CONTAINER)
        assert kubelet.rehearsals == 0
        kubelet.grants = 2
        await kubelet.runs("b")
        await kubelet.calls(IMAGE_STATUS, CREATE_CONTAINER, IMAGE_STATUS, CREATE_CONTAINER)
        assert kubelet.rehearsals == 2
        await kubelet.calls(IMAGE_STATUS, CREATE_CONTAINER)
        assert kubelet.rehearsals == 2

    holds(it)


def test_plugins_look_ahead_once_at_a_time_and_what_they_raise_is_of_no_consequence() -> None:
    async def it(kubelet: Kubelet) -> None:
        kubelet.grants = 1
        await kubelet.runs("a")
        await kubelet.calls(IMAGE_STATUS, IMAGE_STATUS)
        assert kubelet.looks == 2
        kubelet.plugin_waits = asyncio.Event()
        await kubelet.calls(IMAGE_STATUS, IMAGE_STATUS)
        assert (kubelet.looks, kubelet.rehearsals) == (3, 4)

    holds(it)


def test_a_pod_whose_containers_never_come_is_not_rehearsed_for_ever() -> None:
    async def it(kubelet: Kubelet) -> None:
        kubelet.grants = 1
        await kubelet.runs("a")
        kubelet.now_s += WITHIN_S + 1
        await kubelet.calls(IMAGE_STATUS)
        assert kubelet.rehearsals == 0

    holds(it)


def test_a_sandbox_that_never_came_is_not_looked_for_for_ever() -> None:
    async def it(kubelet: Kubelet) -> None:
        await kubelet.calls(RUN_SANDBOX, SANDBOX_STATUS)
        kubelet.now_s += WITHIN_S + 1
        await kubelet.calls(SANDBOX_STATUS, SANDBOX_STATUS)
        assert kubelet.runtime.asked == 1

    holds(it)


def test_a_node_that_has_nothing_to_grant_asks_nothing() -> None:
    async def it(kubelet: Kubelet) -> None:
        await kubelet.runs("a")
        assert kubelet.runtime.asked == 0

    holds(it, wanted=False)


def test_a_runtime_that_is_away_costs_nothing_and_is_asked_again() -> None:
    async def it(kubelet: Kubelet) -> None:
        kubelet.runtime.away = True
        await kubelet.runs("a", "kata")
        kubelet.runtime.away = False
        await kubelet.calls(SANDBOX_STATUS)
        assert await kubelet.containerd.handler("a") == "kata"

    holds(it)
