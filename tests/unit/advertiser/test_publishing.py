"""The annotation, before an API server that loses, refuses and forgets, and beside others who write it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

import pytest

from partage_advertiser import publisher
from partage_advertiser.publisher import Publisher
from partage_base.kube import ApiServer, Backoff, KubeError, node_path, nodes_path
from partage_plugins.vocabulary.keys import INVENTORY as ANNOTATION
from support.fake_api import CutShort, Drop, FakeApi, Fault, Refuse
from support.kube import told, until

NAME: Final = "n1"
PATH: Final = node_path(NAME)
CONTEST_MOST_S: Final = 60.0
Story = Callable[[FakeApi, Publisher], Awaitable[None]]


class Hasty(Backoff):
    """Remembers for how long it would have waited, and hardly does."""

    waits: list[tuple[float, float]] = []  # noqa: RUF012  emptied by the fixture
    """With the most that this one ever waits, which tells contests from troubles."""

    def __init__(self, *, first_s: float, most_s: float, random: Callable[[], float]) -> None:
        super().__init__(first_s=first_s, most_s=most_s, random=lambda: 1.0)
        self._most = most_s

    def after(self, error: KubeError | None = None) -> float:
        self.waits.append((self._most, super().after(error)))
        return 0.01


class Labels:
    """What the publisher saw of the Node."""

    def __init__(self) -> None:
        self.values: list[str | None] = []

    @property
    def value(self) -> str | None:
        """The last."""
        return self.values[-1] if self.values else None

    def __call__(self, labels: Mapping[str, str]) -> None:
        self.values.append(labels.get("v"))


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[float, float]]]:
    monkeypatch.setattr(publisher, "Backoff", Hasty)
    Hasty.waits.clear()
    yield Hasty.waits
    Hasty.waits.clear()


def published(story: Story, **given: Callable[[Mapping[str, str]], None]) -> list[str]:
    """Runs the story beside a publisher; what came of its patches."""
    outcomes: list[str] = []

    async def whole(api: FakeApi, server: ApiServer) -> None:
        a_node(api)
        publisher = Publisher(server, NAME, patched=outcomes.append, **given)
        running = asyncio.create_task(publisher.run())
        try:
            await story(api, publisher)
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    told(whole)
    return outcomes


def a_node(api: FakeApi, **annotations: str) -> None:
    metadata = {"name": NAME, "annotations": {key.replace("_", "."): value for key, value in annotations.items()}}
    api.objects.create(nodes_path(), {"metadata": metadata})


def annotate(api: FakeApi, value: str | None) -> None:
    """As somebody else does."""
    api.objects.patch(PATH, {"metadata": {"annotations": {ANNOTATION: value}}})


def touch(api: FakeApi, value: str) -> None:
    """A change of the Node that is none of our business."""
    api.objects.patch(PATH, {"metadata": {"labels": {"v": value}}})


def stands(api: FakeApi) -> str | None:
    value: str | None = api.objects.get(PATH)["metadata"].get("annotations", {}).get(ANNOTATION)
    return value


def contests(waits: list[tuple[float, float]]) -> list[float]:
    return [delay for most, delay in waits if most == CONTEST_MOST_S]


async def told_true(api: FakeApi, publisher: Publisher, text: str) -> None:
    publisher.want(text)
    await until(lambda: publisher.is_true and stands(api) == text)


def test_what_is_wanted_is_patched_once() -> None:
    labels = Labels()

    async def story(api: FakeApi, publisher: Publisher) -> None:
        await told_true(api, publisher, "one")
        for value in "abc":
            publisher.want("one")
            touch(api, value)
        await until(lambda: labels.value == "c")
        await told_true(api, publisher, "two")
        assert api.count("PATCH") == 2

    assert published(story, on_labels=labels) == ["done", "done"]


def test_a_node_that_can_not_be_read_keeps_what_is_known_of_it() -> None:
    async def story(api: FakeApi, publisher: Publisher) -> None:
        await told_true(api, publisher, "one")
        uid = publisher.node_uid
        api.objects.patch(PATH, {"metadata": {"generateName": 7}})
        api.expire_watches()
        await until(lambda: sum("sendInitialEvents" in each.query for each in api.asked) == 2)
        await asyncio.sleep(0.02)
        assert publisher.node_uid == uid
        api.objects.patch(PATH, {"metadata": {"generateName": None}})
        await told_true(api, publisher, "two")

    published(story)


def test_what_stands_already_is_not_patched() -> None:
    async def story(api: FakeApi, publisher: Publisher) -> None:
        annotate(api, "one")
        publisher.want("one")
        await until(lambda: publisher.is_true)
        assert api.writes() == {}

    assert published(story) == []


def test_what_a_late_watch_tells_of_before_costs_no_second_patch() -> None:
    labels = Labels()

    async def story(api: FakeApi, publisher: Publisher) -> None:
        publisher.want("one")
        await until(lambda: api.watchers and publisher.is_true)
        late = {"metadata": {"name": NAME, "resourceVersion": "1", "labels": {"v": "late"}}}
        api.write_to_watches(_modified(late))
        touch(api, "2")
        await until(lambda: labels.value == "2")
        assert "late" not in labels.values
        assert api.count("PATCH") == 1

    published(story, on_labels=labels)


@pytest.mark.parametrize(
    "fault",
    [Refuse(429, retry_after="7"), Refuse(500), Refuse(409), Refuse(403), Drop(), Drop(after_success=True), CutShort()],
    ids=str,
)
def test_a_patch_that_fails_is_tried_again_until_it_stands(fault: Fault, waits: list[tuple[float, float]]) -> None:
    async def story(api: FakeApi, publisher: Publisher) -> None:
        await until(lambda: api.watchers)
        api.expect(fault, method="PATCH", times=2)
        await told_true(api, publisher, "one")

    assert published(story)[-1:] in ([], ["done"], ["failed"])
    assert not contests(waits)


def test_waits_grow_and_are_at_least_what_the_server_asks_for(waits: list[tuple[float, float]]) -> None:
    async def story(api: FakeApi, publisher: Publisher) -> None:
        await until(lambda: api.watchers)
        api.expect(Refuse(429, retry_after="7"), method="PATCH", times=3)
        await told_true(api, publisher, "one")

    assert published(story) == ["failed"] * 3 + ["done"]
    delays = [delay for _, delay in waits]
    assert delays == sorted(delays)
    assert delays[0] >= 7


def test_only_the_last_of_what_was_wanted_during_an_outage_is_written() -> None:
    async def story(api: FakeApi, publisher: Publisher) -> None:
        await told_true(api, publisher, "one")
        await api.stop()
        for text in ("two", "three", "four"):
            publisher.want(text)
        await api.start()
        await until(lambda: stands(api) == "four")
        assert [each.body for each in api.asked if each.method == "PATCH"][1:] in (
            [_body("four")],
            [_body("four")] * 2,  # one whose answer was lost
        )

    published(story)


@pytest.mark.parametrize("value", ["forged", None])
def test_what_somebody_else_wrote_is_answered_more_and_more_slowly(
    value: str | None, waits: list[tuple[float, float]]
) -> None:
    async def story(api: FakeApi, publisher: Publisher) -> None:
        await told_true(api, publisher, "one")
        for number in range(1, 6):
            annotate(api, value)
            await until(lambda: stands(api) == "one")
            assert len(contests(waits)) == number

    published(story)
    delays = contests(waits)
    assert delays == sorted(delays)
    assert delays[-1] >= 8 * delays[0]


def test_somebody_who_takes_it_back_by_himself_is_not_answered(
    monkeypatch: pytest.MonkeyPatch, waits: list[tuple[float, float]]
) -> None:
    monkeypatch.setattr(Publisher, "_slowly_s", lambda _: 3600.0)

    async def story(api: FakeApi, publisher: Publisher) -> None:
        await told_true(api, publisher, "one")
        annotate(api, "forged")
        await until(lambda: not publisher.is_true)
        annotate(api, "one")
        await until(lambda: publisher.is_true)
        await told_true(api, publisher, "two")
        assert [each.body for each in api.asked if each.method == "PATCH"] == [_body("one"), _body("two")]

    published(story)


def test_news_do_not_wait_for_a_contest_to_cool_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Publisher, "_slowly_s", lambda _: 3600.0)

    async def story(api: FakeApi, publisher: Publisher) -> None:
        await told_true(api, publisher, "one")
        annotate(api, "forged")
        await until(lambda: not publisher.is_true)
        await told_true(api, publisher, "two")
        assert [each.body for each in api.asked if each.method == "PATCH"] == [_body("one"), _body("two")]

    published(story)


def test_a_node_that_registers_again_is_told_at_once(waits: list[tuple[float, float]]) -> None:
    async def story(api: FakeApi, publisher: Publisher) -> None:
        await told_true(api, publisher, "one")
        uid = publisher.node_uid
        api.objects.delete(PATH)
        await until(lambda: not publisher.is_true)
        assert publisher.node_uid == ""
        a_node(api)
        await until(lambda: publisher.is_true)
        assert publisher.node_uid != uid

    published(story)
    assert not contests(waits)


def test_labels_are_heard_as_they_come_and_go() -> None:
    labels = Labels()

    async def story(api: FakeApi, publisher: Publisher) -> None:
        await until(lambda: api.watchers)
        touch(api, "1")
        await until(lambda: labels.value == "1")
        api.objects.delete(PATH)
        await until(lambda: labels.value is None)

    published(story, on_labels=labels)


def test_nothing_is_true_before_the_node_was_seen() -> None:
    async def story(api: FakeApi, publisher: Publisher) -> None:
        publisher.want("one")
        assert not publisher.is_true
        await until(lambda: publisher.is_true)

    published(story)


def _body(text: str) -> bytes:
    return f'{{"metadata":{{"annotations":{{"{ANNOTATION}":"{text}"}}}}}}'.encode()


def _modified(object_: object) -> bytes:
    return json.dumps({"type": "MODIFIED", "object": object_}).encode() + b"\n"
