"""Containers by their keys, as the runtime says; and nothing at all while it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_base.cri import CriError, ListedContainer, PeerAway, PeerRefused, RuntimeClient, UnaryClient
from partage_isolation.audit.runtime import Runtime, RuntimeContainer
from partage_plugins.vocabulary.keys import CONTAINER
from partage_plugins.vocabulary.names import ContainerKey

KEY, OTHER = ContainerKey("a" * 32), ContainerKey("b" * 32)


class Fake(RuntimeClient):
    """A runtime that counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(UnaryClient(Path("/nonexistent")))
        self.listed: list[ListedContainer] = []
        self.pids: dict[str, int] = {}
        self.away: CriError | None = None
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


def annotation(key: ContainerKey) -> str:
    return f'{{"v":1,"key":"{key}","gen":1,"grants":{{"gpu":[]}}}}'


async def test_only_containers_with_our_annotation_are_ours() -> None:
    fake = Fake()
    fake.put("c1", annotation(KEY))
    fake.put("c2", None)
    fake.put("c3", "nonsense")
    fake.pids["c1"] = 77
    assert await Runtime(fake).containers() == {KEY: RuntimeContainer("c1", 77, running=True)}


async def test_a_pid_is_asked_for_once_and_only_of_those_that_run() -> None:
    fake = Fake()
    fake.put("c1", annotation(KEY))
    fake.put("c2", annotation(OTHER), running=False, exited=True)
    fake.pids["c1"] = 77
    runtime = Runtime(fake)
    for _ in range(3):
        found = await runtime.containers()
        assert found is not None
        assert found[OTHER] == RuntimeContainer("c2", None, running=False)
    assert fake.asked == ["c1"]
    fake.listed.clear()
    fake.put("c9", annotation(KEY))
    fake.pids["c9"] = 99
    assert await runtime.containers() == {KEY: RuntimeContainer("c9", 99, running=True)}


async def test_of_two_containers_with_one_key_the_one_that_runs_counts() -> None:
    for order in (("old", "new"), ("new", "old")):
        fake = Fake()
        for id_ in order:
            fake.put(id_, annotation(KEY), running=id_ == "new", exited=id_ == "old")
        found = await Runtime(fake).containers()
        assert found == {KEY: RuntimeContainer("new", None, running=True)}


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
