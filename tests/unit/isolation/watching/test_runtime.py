"""Containers by their keys, as the runtime lists them; nothing while the runtime does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_base.cri import CriError, ListedContainer, PeerAway, PeerRefused, RuntimeClient, UnaryClient
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.runtime import Runtime
from partage_plugins.api.claims import ClaimUid, claim_device, claim_key
from partage_plugins.api.keys import CONTAINER
from partage_plugins.api.names import ContainerKey

KEY, OTHER = ContainerKey("a" * 32), ContainerKey("b" * 32)


class Fake(RuntimeClient):
    """A runtime that counts its calls."""

    def __init__(self) -> None:
        super().__init__(UnaryClient(Path("/nonexistent")))
        self.listed: list[ListedContainer] = []
        self.pids: dict[str, int] = {}
        self.devices: dict[str, tuple[str, ...]] = {}
        self.away: CriError | None = None
        self.devices_away: CriError | None = None
        self.asked: list[str] = []

    def put(self, id_: str, annotation: str | None, *, running: bool = True, exited: bool = False) -> None:
        annotations = {} if annotation is None else {CONTAINER: annotation}
        self.listed.append(
            ListedContainer(
                id=id_,
                sandbox_id="s",
                name="main",
                pod_uid="u",
                exited=exited,
                annotations=annotations,
                running=running,
            )
        )

    async def containers(self) -> tuple[ListedContainer, ...]:
        if self.away is not None:
            raise self.away
        return tuple(self.listed)

    async def pid(self, container_id: str) -> int | None:
        self.asked.append(container_id)
        return self.pids.get(container_id)

    async def cdi_devices(self, container_id: str) -> tuple[str, ...] | None:
        self.asked.append(f"devices of {container_id}")
        if self.devices_away is not None:
            raise self.devices_away
        if container_id not in self.devices:
            raise PeerRefused("s", 5, "not found")
        return self.devices[container_id]


def annotation(key: ContainerKey) -> str:
    return f'{{"v":1,"key":"{key}","gen":1,"grants":{{"gpu":[]}}}}'


async def test_only_containers_with_our_annotation_are_ours() -> None:
    fake = Fake()
    fake.put("c1", annotation(KEY))
    fake.put("c2", None)
    fake.put("c3", "nonsense")
    fake.pids["c1"] = 77
    assert await Runtime(fake).containers() == Listing([RuntimeContainer("c1", KEY, 77, running=True)])


async def test_one_that_cannot_be_read_is_nobodys_and_costs_no_other_its_place() -> None:
    """Text that is not UTF-8, as a real runtime's list contains it."""
    fake = Fake()
    fake.put("c1", annotation(KEY))
    fake.put("c2", annotation(OTHER).replace("1", "\udcff"))
    assert await Runtime(fake).containers() == Listing([RuntimeContainer("c1", KEY, None, running=True)])


async def test_a_pid_is_asked_for_once_and_only_of_those_that_run() -> None:
    fake = Fake()
    fake.put("c1", annotation(KEY))
    fake.put("c2", annotation(OTHER), running=False, exited=True)
    fake.pids["c1"] = 77
    runtime = Runtime(fake)
    for _ in range(3):
        found = await runtime.containers()
        assert found is not None
        assert found.of(OTHER) == [RuntimeContainer("c2", OTHER, None, running=False)]
    assert fake.asked == ["c1"]
    fake.listed.clear()
    fake.put("c9", annotation(KEY))
    fake.pids["c9"] = 99
    assert await runtime.containers() == Listing([RuntimeContainer("c9", KEY, 99, running=True)])


async def test_of_two_containers_with_one_key_the_one_that_runs_counts() -> None:
    for order in (("old", "new"), ("new", "old")):
        fake = Fake()
        for id_ in order:
            fake.put(id_, annotation(KEY), running=id_ == "new", exited=id_ == "old")
        found = await Runtime(fake).containers()
        assert found == Listing([RuntimeContainer("new", KEY, None, running=True)])


@pytest.mark.parametrize("error", [PeerAway("s", "gone"), PeerRefused("s", 14, "starting")])
async def test_a_runtime_that_does_not_answer_says_nothing(error: CriError) -> None:
    fake = Fake()
    fake.put("c1", annotation(KEY))
    runtime = Runtime(fake)
    assert await runtime.containers()
    fake.away = error
    assert await runtime.containers() is None
    fake.away = None
    assert await runtime.containers()


CLAIM = ClaimUid("5f0c")
CLAIM_KEY = claim_key(CLAIM)


def claiming(fake: Fake, id_: str, *, exited: bool = False) -> None:
    fake.put(id_, None, running=not exited, exited=exited)
    fake.devices[id_] = ("nvidia.com/gpu=0", claim_device(CLAIM))


async def test_all_containers_of_a_claim_are_its_but_those_that_have_ended() -> None:
    fake = Fake()
    claiming(fake, "c1")
    claiming(fake, "c2")
    claiming(fake, "c3", exited=True)
    fake.put("c4", None)
    fake.devices["c4"] = ()
    found = await Runtime(fake).containers(with_claims=True)
    assert found is not None
    assert [(one.id, one.claim) for one in found.of(CLAIM_KEY)] == [("c1", CLAIM), ("c2", CLAIM)]
    assert found.keys() == {"c1", "c2"}


async def test_devices_are_asked_for_once_and_only_where_there_are_claims() -> None:
    fake = Fake()
    claiming(fake, "c1")
    runtime = Runtime(fake)
    assert not await runtime.containers()
    assert fake.asked == []
    for _ in range(3):
        assert await runtime.containers(with_claims=True)
    assert fake.asked.count("devices of c1") == 1


async def test_a_container_that_is_removed_while_it_is_asked_about_has_no_claim() -> None:
    fake = Fake()
    fake.put("c1", None)
    assert await Runtime(fake).containers(with_claims=True) == Listing()


async def test_a_runtime_that_does_not_tell_devices_now_is_asked_again() -> None:
    fake = Fake()
    claiming(fake, "c1")
    fake.devices_away = PeerAway("s", "gone")
    runtime = Runtime(fake)
    assert await runtime.containers(with_claims=True) is None
    fake.devices_away = None
    found = await runtime.containers(with_claims=True)
    assert found is not None
    assert found.keys() == {"c1"}
