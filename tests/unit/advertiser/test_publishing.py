"""The annotation, with an API server that loses, refuses and forgets writes, and with other writers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final

import pytest

from partage_advertiser.publisher import Publisher
from partage_base.kube import ApiServer, Backoff, KubeError, node_path, nodes_path
from partage_plugins.api.keys import INVENTORY as ANNOTATION
from support.fake_api import CutShort, Drop, FakeApi, Fault, Refuse
from support.kube import beside, until

NAME: Final = "n1"
PATH: Final = node_path(NAME)
CONTEST_MOST_S: Final = 60.0


class Hasty(Backoff):
    """Records how long it would have waited, and waits hardly at all."""

    waits: list[tuple[float, float]] = []  # noqa: RUF012  emptied by the fixture
    """Each wait with the longest one of its backoff, which tells contests from failures."""

    def __init__(self, *, first_s: float, most_s: float) -> None:
        super().__init__(first_s=first_s, most_s=most_s, random=lambda: 1.0)
        self._most = most_s

    def after(self, error: KubeError | None = None) -> float:
        self.waits.append((self._most, super().after(error)))
        return 0.01


class Labels:
    """The Node's labels as the publisher saw them."""

    def __init__(self) -> None:
        self.values: list[str | None] = []

    @property
    def value(self) -> str | None:
        """The last value."""
        return self.values[-1] if self.values else None

    def __call__(self, labels: Mapping[str, str]) -> None:
        self.values.append(labels.get("v"))


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[float, float]]]:
    monkeypatch.setattr("partage_advertiser.publisher.Backoff", Hasty)
    Hasty.waits.clear()
    yield Hasty.waits
    Hasty.waits.clear()


@pytest.fixture
def labels() -> Labels:
    return Labels()


@pytest.fixture
def outcomes() -> list[str]:
    """The outcomes of the patches."""
    return []


@pytest.fixture
async def publisher(
    api: FakeApi, server: ApiServer, labels: Labels, outcomes: list[str], waits: list[tuple[float, float]]
) -> AsyncIterator[Publisher]:
    a_node(api)
    publisher = Publisher(server, NAME, patched=outcomes.append, on_labels=labels)
    async with beside(publisher.run()):
        yield publisher


def a_node(api: FakeApi, **annotations: str) -> None:
    metadata = {"name": NAME, "annotations": {key.replace("_", "."): value for key, value in annotations.items()}}
    api.objects.create(nodes_path(), {"metadata": metadata})


def annotate(api: FakeApi, value: str | None) -> None:
    """Write the annotation as another writer would."""
    api.objects.patch(PATH, {"metadata": {"annotations": {ANNOTATION: value}}})


def touch(api: FakeApi, value: str) -> None:
    """Change the Node in a way that does not concern the publisher."""
    api.objects.patch(PATH, {"metadata": {"labels": {"v": value}}})


def stands(api: FakeApi) -> str | None:
    value: str | None = api.objects.get(PATH)["metadata"].get("annotations", {}).get(ANNOTATION)
    return value


def contests(waits: list[tuple[float, float]]) -> list[float]:
    return [delay for most, delay in waits if most == CONTEST_MOST_S]


async def told_true(api: FakeApi, publisher: Publisher, text: str) -> None:
    publisher.want(text)
    await until(lambda: publisher.is_true and stands(api) == text)


async def test_what_is_wanted_is_patched_once(
    api: FakeApi, publisher: Publisher, outcomes: list[str], labels: Labels
) -> None:
    await told_true(api, publisher, "one")
    for value in "abc":
        publisher.want("one")
        touch(api, value)
    await until(lambda: labels.value == "c")
    await told_true(api, publisher, "two")
    assert api.count("PATCH") == 2
    assert outcomes == ["done", "done"]


async def test_a_node_that_can_not_be_read_keeps_what_is_known_of_it(api: FakeApi, publisher: Publisher) -> None:
    await told_true(api, publisher, "one")
    uid = publisher.node_uid
    api.objects.patch(PATH, {"metadata": {"generateName": 7}})
    api.expire_watches()
    await until(lambda: sum("sendInitialEvents" in each.query for each in api.asked) == 2)
    await asyncio.sleep(0.02)
    assert publisher.node_uid == uid
    api.objects.patch(PATH, {"metadata": {"generateName": None}})
    await told_true(api, publisher, "two")


async def test_what_stands_already_is_not_patched(api: FakeApi, publisher: Publisher, outcomes: list[str]) -> None:
    annotate(api, "one")
    publisher.want("one")
    await until(lambda: publisher.is_true)
    assert api.writes() == {}
    assert outcomes == []


async def test_what_a_late_watch_tells_of_before_costs_no_second_patch(
    api: FakeApi, publisher: Publisher, labels: Labels
) -> None:
    publisher.want("one")
    await until(lambda: api.watchers and publisher.is_true)
    late = {"metadata": {"name": NAME, "resourceVersion": "1", "labels": {"v": "late"}}}
    api.write_to_watches(_modified(late))
    touch(api, "2")
    await until(lambda: labels.value == "2")
    assert "late" not in labels.values
    assert api.count("PATCH") == 1


@pytest.mark.parametrize(
    "fault",
    [Refuse(429, retry_after="7"), Refuse(500), Refuse(409), Refuse(403), Drop(), Drop(after_success=True), CutShort()],
    ids=str,
)
async def test_a_patch_that_fails_is_tried_again_until_it_stands(
    api: FakeApi, publisher: Publisher, outcomes: list[str], fault: Fault, waits: list[tuple[float, float]]
) -> None:
    await until(lambda: api.watchers)
    api.expect(fault, method="PATCH", times=2)
    await told_true(api, publisher, "one")
    assert outcomes[-1:] in ([], ["done"], ["failed"])
    assert not contests(waits)


async def test_waits_grow_and_are_at_least_what_the_server_asks_for(
    api: FakeApi, publisher: Publisher, outcomes: list[str], waits: list[tuple[float, float]]
) -> None:
    await until(lambda: api.watchers)
    api.expect(Refuse(429, retry_after="7"), method="PATCH", times=3)
    await told_true(api, publisher, "one")
    assert outcomes == ["failed"] * 3 + ["done"]
    delays = [delay for _, delay in waits]
    assert delays == sorted(delays)
    assert delays[0] >= 7


async def test_only_the_last_of_what_was_wanted_during_an_outage_is_written(api: FakeApi, publisher: Publisher) -> None:
    await told_true(api, publisher, "one")
    await api.stop()
    for text in ("two", "three", "four"):
        publisher.want(text)
    await api.start()
    await until(lambda: stands(api) == "four")
    assert [each.body for each in api.asked if each.method == "PATCH"][1:] in (
        [_body("four")],
        [_body("four")] * 2,  # a retry after a lost answer
    )


@pytest.mark.parametrize("value", ["forged", None])
async def test_what_somebody_else_wrote_is_answered_more_and_more_slowly(
    api: FakeApi, publisher: Publisher, value: str | None, waits: list[tuple[float, float]]
) -> None:
    await told_true(api, publisher, "one")
    for number in range(1, 6):
        annotate(api, value)
        await until(lambda: stands(api) == "one")
        assert len(contests(waits)) == number
    delays = contests(waits)
    assert delays == sorted(delays)
    assert delays[-1] >= 8 * delays[0]


async def test_somebody_who_takes_it_back_by_himself_is_not_answered(
    api: FakeApi, publisher: Publisher, monkeypatch: pytest.MonkeyPatch, waits: list[tuple[float, float]]
) -> None:
    monkeypatch.setattr(Publisher, "_slowly_s", lambda _: 3600.0)
    await told_true(api, publisher, "one")
    annotate(api, "forged")
    await until(lambda: not publisher.is_true)
    annotate(api, "one")
    await until(lambda: publisher.is_true)
    await told_true(api, publisher, "two")
    assert [each.body for each in api.asked if each.method == "PATCH"] == [_body("one"), _body("two")]


async def test_news_do_not_wait_for_a_contest_to_cool_down(
    api: FakeApi, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Publisher, "_slowly_s", lambda _: 3600.0)
    await told_true(api, publisher, "one")
    annotate(api, "forged")
    await until(lambda: not publisher.is_true)
    await told_true(api, publisher, "two")
    assert [each.body for each in api.asked if each.method == "PATCH"] == [_body("one"), _body("two")]


async def test_a_node_that_registers_again_is_told_at_once(
    api: FakeApi, publisher: Publisher, waits: list[tuple[float, float]]
) -> None:
    await told_true(api, publisher, "one")
    uid = publisher.node_uid
    api.objects.delete(PATH)
    await until(lambda: not publisher.is_true)
    assert publisher.node_uid == ""
    a_node(api)
    await until(lambda: publisher.is_true)
    assert publisher.node_uid != uid
    assert not contests(waits)


async def test_labels_are_heard_as_they_come_and_go(api: FakeApi, publisher: Publisher, labels: Labels) -> None:
    await until(lambda: api.watchers)
    touch(api, "1")
    await until(lambda: labels.value == "1")
    api.objects.delete(PATH)
    await until(lambda: labels.value is None)


async def test_nothing_is_true_before_the_node_was_seen(api: FakeApi, publisher: Publisher) -> None:
    publisher.want("one")
    assert not publisher.is_true
    await until(lambda: publisher.is_true)


def _body(text: str) -> bytes:
    return f'{{"metadata":{{"annotations":{{"{ANNOTATION}":"{text}"}}}}}}'.encode()


def _modified(object_: object) -> bytes:
    return json.dumps({"type": "MODIFIED", "object": object_}).encode() + b"\n"
