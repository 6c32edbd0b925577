"""Containers by their keys, as the runtime lists them; nothing while the runtime does not answer."""

from __future__ import annotations

import pytest

from partage_base.cri import CriError, PeerAway, PeerRefused
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.runtime import Runtime
from partage_plugins.api.claims import ClaimUid, claim_device, claim_key
from partage_plugins.api.keys import CONTAINER
from partage_plugins.api.names import ContainerKey
from support.fake_runtime import FakeRuntime

KEY, OTHER = ContainerKey("a" * 32), ContainerKey("b" * 32)


def annotation(key: ContainerKey) -> dict[str, str]:
    return {CONTAINER: f'{{"v":1,"key":"{key}","gen":1,"grants":{{"gpu":[]}}}}'}


async def test_only_containers_with_our_annotation_are_ours() -> None:
    fake = FakeRuntime()
    fake.put("c1", annotation(KEY))
    fake.put("c2")
    fake.put("c3", {CONTAINER: "nonsense"})
    fake.pids["c1"] = 77
    assert await Runtime(fake.client).containers() == Listing([RuntimeContainer("c1", KEY, 77, running=True)])


async def test_one_that_cannot_be_read_is_nobodys_and_costs_no_other_its_place() -> None:
    """Text that is not UTF-8, as a real runtime's list contains it."""
    fake = FakeRuntime()
    fake.put("c1", annotation(KEY))
    fake.put("c2", {CONTAINER: annotation(OTHER)[CONTAINER].replace("1", "\udcff")})
    assert await Runtime(fake.client).containers() == Listing([RuntimeContainer("c1", KEY, None, running=True)])


async def test_a_pid_is_asked_for_once_and_only_of_those_that_run() -> None:
    fake = FakeRuntime()
    fake.put("c1", annotation(KEY))
    fake.put("c2", annotation(OTHER), exited=True)
    fake.pids["c1"] = 77
    runtime = Runtime(fake.client)
    expected = [RuntimeContainer("c1", KEY, 77, running=True), RuntimeContainer("c2", OTHER, None, running=False)]
    for _ in range(3):
        assert await runtime.containers() == Listing(expected)
    assert fake.times_asked("ContainerStatus") == 1
    fake.listed.clear()
    fake.put("c9", annotation(KEY))
    fake.pids["c9"] = 99
    assert await runtime.containers() == Listing([RuntimeContainer("c9", KEY, 99, running=True)])


async def test_of_two_containers_with_one_key_the_one_that_runs_counts() -> None:
    for order in (("old", "new"), ("new", "old")):
        fake = FakeRuntime()
        for id_ in order:
            fake.put(id_, annotation(KEY), exited=id_ == "old")
        found = await Runtime(fake.client).containers()
        assert found == Listing([RuntimeContainer("new", KEY, None, running=True)])


@pytest.mark.parametrize("error", [PeerAway("s", "gone"), PeerRefused("s", 14, "starting")])
async def test_a_runtime_that_does_not_answer_says_nothing(error: CriError) -> None:
    fake = FakeRuntime()
    fake.put("c1", annotation(KEY))
    runtime = Runtime(fake.client)
    assert await runtime.containers()

    def fails() -> None:
        raise error

    fake.meanwhile = fails
    assert await runtime.containers() is None
    assert await runtime.containers()


CLAIM = ClaimUid("5f0c")
CLAIM_KEY = claim_key(CLAIM)


def claiming(fake: FakeRuntime, id_: str, *, exited: bool = False) -> None:
    fake.put(id_, exited=exited)
    fake.devices[id_] = ("nvidia.com/gpu=0", claim_device(CLAIM))


async def test_all_containers_of_a_claim_are_its_but_those_that_have_ended() -> None:
    fake = FakeRuntime()
    claiming(fake, "c1")
    claiming(fake, "c2")
    claiming(fake, "c3", exited=True)
    fake.put("c4")
    fake.devices["c4"] = ()
    found = await Runtime(fake.client).containers(with_claims=True)
    assert found is not None
    assert [(one.id, one.claim) for one in found.of(CLAIM_KEY)] == [("c1", CLAIM), ("c2", CLAIM)]
    assert found.keys() == {"c1", "c2"}


async def test_devices_are_asked_for_once_and_only_where_there_are_claims() -> None:
    fake = FakeRuntime()
    claiming(fake, "c1")
    fake.pids["c1"] = 77
    runtime = Runtime(fake.client)
    assert not await runtime.containers()
    assert fake.times_asked("ContainerStatus") == 0
    for _ in range(3):
        assert await runtime.containers(with_claims=True)
    assert fake.times_asked("ContainerStatus") == 2, "once for its devices and once for its pid"


async def test_a_container_that_is_removed_while_it_is_asked_about_has_no_claim() -> None:
    fake = FakeRuntime()
    fake.put("c1")
    fake.devices["c1"] = PeerRefused("s", 5, "not found")
    assert await Runtime(fake.client).containers(with_claims=True) == Listing()


async def test_a_runtime_that_does_not_tell_devices_now_is_asked_again() -> None:
    fake = FakeRuntime()
    claiming(fake, "c1")
    told, fake.devices["c1"] = fake.devices["c1"], PeerAway("s", "gone")
    runtime = Runtime(fake.client)
    assert await runtime.containers(with_claims=True) is None
    fake.devices["c1"] = told
    found = await runtime.containers(with_claims=True)
    assert found is not None
    assert found.keys() == {"c1"}
