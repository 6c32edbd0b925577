"""Credentials rotate under a process that lives for months: the client follows, and a failed renewal does no harm."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from partage_base.kube import Access, ApiServer, BadAccess, Node, NotAllowed, node_path
from partage_base.kube import access as access_module
from partage_base.kube.access import LOOK_AFTER_REFUSAL_S, LOOK_EVERY_S
from partage_base.kube.credentials import Credentials, Reading
from rig.client.wait import patient
from rig.identity.certificates import Authority, Use
from rig.identity.people import Person
from rig.patience import PATIENCE_S
from support import kubeconfigs
from support.fake_api import FakeApi
from support.kube import stored
from support.loops import LOOPS

NEW = "2"
LONG_AGO, FAR_AWAY = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Source:
    """A source of credentials."""

    def __init__(self) -> None:
        self.token, self.reads, self.renewals = "1", 0, 0
        self.failure: BadAccess | None = None

    def read(self) -> Reading:
        self.reads += 1
        if self.failure:
            raise self.failure
        return Reading(self._credentials(), (), self.renewed)

    def renewed(self) -> Credentials:
        self.renewals += 1
        if self.failure:
            raise self.failure
        return self._credentials()

    def _credentials(self) -> Credentials:
        return Credentials(url="http://x", authorization=self.token)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def source() -> Source:
    return Source()


async def token_of(access: Access) -> str | None:
    return (await access.current()).authorization


@pytest.fixture
def at_clock(clock: Clock) -> Callable[[Path], Access]:
    """`Access.find` with the test's clock."""

    def find(path: Path) -> Access:
        return Access.find(path, environ={}, clock=clock)

    return find


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_new_token_is_used_within_half_a_minute(clock: Clock, source: Source, loop: str) -> None:
    access = Access("x", source.read, clock=clock)
    source.token = NEW
    assert await token_of(access) == "1"
    clock.now += LOOK_EVERY_S
    assert await token_of(access) == "2"
    assert (source.reads, source.renewals) == (1, 1)


async def test_nothing_new_keeps_the_very_credentials_and_so_the_connections(clock: Clock, source: Source) -> None:
    access = Access("x", source.read, clock=clock)
    before = await access.current()
    clock.now += LOOK_EVERY_S
    assert await access.current() is before
    assert source.renewals == 1


async def test_many_calls_at_once_look_once(clock: Clock, source: Source) -> None:
    access = Access("x", source.read, clock=clock)
    clock.now += LOOK_EVERY_S
    await asyncio.gather(*(access.current() for _ in range(50)))
    assert source.renewals == 1


async def test_a_renewal_that_fails_is_told_and_the_old_credentials_go_on(clock: Clock, source: Source) -> None:
    access = Access("x", source.read, clock=clock)
    source.failure = BadAccess("the disk is gone")
    for _ in range(2):
        clock.now += LOOK_EVERY_S
        with capture_logs() as logs:
            assert await token_of(access) == "1"
        assert [(line["log_level"], line["why"]) for line in logs] == [("warning", "the disk is gone")]
    source.failure, source.token = None, NEW
    clock.now += LOOK_EVERY_S
    assert await token_of(access) == "2"


async def test_after_a_refusal_all_is_read_anew_but_not_at_every_call(clock: Clock, source: Source) -> None:
    access = Access("x", source.read, clock=clock)
    old = await access.current()
    source.token = NEW
    access.refused(old)
    assert await token_of(access) == "1"
    clock.now += LOOK_AFTER_REFUSAL_S
    assert await token_of(access) == "2"
    access.refused(old)
    clock.now += LOOK_AFTER_REFUSAL_S
    assert await token_of(access) == "2"
    assert source.reads == 2


async def test_whoever_was_refused_and_finds_nothing_else_is_told_why(clock: Clock, source: Source) -> None:
    access = Access("x", source.read, clock=clock)
    access.refused(await access.current())
    source.failure = BadAccess("log in again")
    clock.now += LOOK_AFTER_REFUSAL_S
    for _ in range(2):
        with capture_logs(), pytest.raises(BadAccess, match="log in again"):
            await access.current()
    assert source.reads == 2
    source.failure, source.token = None, NEW
    clock.now += LOOK_AFTER_REFUSAL_S
    assert await token_of(access) == "2"


async def test_a_refusal_by_the_server_is_what_leads_to_it(clock: Clock, source: Source) -> None:
    async with FakeApi() as api:
        api.objects.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        api.accepts = {"2"}

        def read() -> Reading:
            return replace(source.read(), credentials=Credentials(url=api.url, authorization=source.token))

        async with ApiServer(Access("x", read, clock=clock), user_agent="t") as server:
            source.token = NEW
            clock.now += LOOK_AFTER_REFUSAL_S
            with pytest.raises(NotAllowed, match="401 Unauthorized: Unauthorized; renew the credentials"):
                await server.get(node_path("n1"), Node)
            assert (await server.get(node_path("n1"), Node)).metadata.name == "n1"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


async def test_a_plugin_that_hangs_costs_a_moment_and_no_call(
    tmp_path: Path, pipe: Path, at_clock: Callable[[Path], Access], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "PATIENCE_S", 0.05)
    first, said = tmp_path / "first", kubeconfigs.credential("1", expires=LONG_AGO)
    script = f"test -e {first} && cat {pipe} && exit; touch {first}; echo '{said}'"
    path = kubeconfigs.write(tmp_path / "config", user=kubeconfigs.plugin("sh", "-c", script))
    access = at_clock(path)
    clock.now += LOOK_EVERY_S
    for _ in range(3):
        assert await token_of(access) == "Bearer 1"
    await asyncio.to_thread(pipe.write_text, kubeconfigs.credential("2", expires=FAR_AWAY))
    async with patient("the new token is there"):
        while await token_of(access) != "Bearer 2":  # noqa: ASYNC110  (no one would set an event)
            await asyncio.sleep(0.005)


async def test_whoever_was_refused_does_not_wait_for_a_plugin_for_ever(
    clock: Clock, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "PATIENCE_AFTER_REFUSAL_S", 0.05)
    answered = threading.Event()

    def read() -> Reading:
        if source.reads:
            answered.wait(PATIENCE_S)
        return source.read()

    access = Access("kubeconfig x", read, clock=clock)
    access.refused(await access.current())
    clock.now += LOOK_AFTER_REFUSAL_S
    for _ in range(2):
        with pytest.raises(BadAccess, match="kubeconfig x: refused, and new ones take long"):
            await access.current()
    source.token = NEW
    answered.set()
    monkeypatch.setattr(access_module, "PATIENCE_AFTER_REFUSAL_S", 20)
    assert await token_of(access) == NEW
    assert source.reads == 2


@pytest.mark.parametrize(("expires", "runs"), [(LONG_AGO, 3), (FAR_AWAY, 1), (None, 1)])
async def test_a_plugin_is_asked_again_only_when_what_it_gave_expires(
    tmp_path: Path, at_clock: Callable[[Path], Access], clock: Clock, expires: str | None, runs: int
) -> None:
    count = tmp_path / "count"
    script = f"echo >> {count}; echo '{kubeconfigs.credential('t', expires=expires)}'"
    path = kubeconfigs.write(tmp_path / "config", user=kubeconfigs.plugin("sh", "-c", script))
    access = at_clock(path)
    for _ in range(2):
        clock.now += LOOK_EVERY_S
        await access.current()
    assert count.read_text() == runs * "\n"


async def test_a_certificate_of_a_plugin_is_followed_when_it_expires(
    tmp_path: Path, at_clock: Callable[[Path], Access], clock: Clock
) -> None:
    authority, said = Authority("a cluster"), tmp_path / "said"
    path = kubeconfigs.write(tmp_path / "config", user=kubeconfigs.plugin("cat", str(said)))
    said.write_text(kubeconfigs.certified(authority.issue(Person("a"), Use.CLIENT), expires=LONG_AGO))
    access = at_clock(path)
    before = await access.current()
    clock.now += LOOK_EVERY_S
    assert await access.current() is before
    said.write_text(kubeconfigs.certified(authority.issue(Person("b"), Use.CLIENT), expires=LONG_AGO))
    clock.now += LOOK_EVERY_S
    assert (await access.current()).tls is not before.tls


async def test_a_plugin_that_fails_later_says_why_and_costs_nothing(
    tmp_path: Path, at_clock: Callable[[Path], Access], clock: Clock
) -> None:
    first, said = tmp_path / "first", kubeconfigs.credential("1", expires=LONG_AGO)
    script = f"test -e {first} && echo session over >&2 && exit 1; touch {first}; echo '{said}'"
    path = kubeconfigs.write(tmp_path / "config", user=kubeconfigs.plugin("sh", "-c", script))
    access = at_clock(path)
    clock.now += LOOK_EVERY_S
    with capture_logs() as logs:
        assert await token_of(access) == "Bearer 1"
    assert "session over" in logs[0]["why"]


def replaced(path: Path, content: str) -> None:
    """Replaces the file by a rename, as kubelet does."""
    new = path.with_suffix(".new")
    new.write_text(content)
    new.replace(path)


async def test_a_token_file_that_is_replaced_is_followed(
    tmp_path: Path, at_clock: Callable[[Path], Access], clock: Clock
) -> None:
    (tmp_path / "token").write_text("1")
    path = kubeconfigs.write(tmp_path / "config", user={"tokenFile": "token"})
    access = at_clock(path)
    replaced(tmp_path / "token", "2\n")
    clock.now += LOOK_EVERY_S
    assert await token_of(access) == "Bearer 2"
    (tmp_path / "token").unlink()
    clock.now += LOOK_EVERY_S
    with capture_logs() as logs:
        assert await token_of(access) == "Bearer 2"
    assert len(logs) == 1
    (tmp_path / "token").write_text("3")
    clock.now += LOOK_EVERY_S
    assert await token_of(access) == "Bearer 3"


async def test_a_service_account_whose_token_rotates_is_followed(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "token").write_text("1")
    (tmp_path / "ca.crt").write_bytes(Authority("a cluster").certificate)
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    access = Access.find(None, environ=environ, account=tmp_path, clock=clock)
    assert await token_of(access) == "Bearer 1"
    replaced(tmp_path / "token", "2")
    clock.now += LOOK_EVERY_S
    assert await token_of(access) == "Bearer 2"


async def test_a_client_certificate_that_is_replaced_is_followed(
    tmp_path: Path, at_clock: Callable[[Path], Access], clock: Clock
) -> None:
    """Kubelet renews its own in place."""
    authority = Authority("a cluster")
    stored(tmp_path, "client", authority.issue(Person("a"), Use.CLIENT))
    path = kubeconfigs.write(tmp_path / "config", user={"client-certificate": "client.crt", "client-key": "client.key"})
    access = at_clock(path)
    before = await access.current()
    clock.now += LOOK_EVERY_S
    assert await access.current() is before
    stored(tmp_path, "client", authority.issue(Person("b"), Use.CLIENT))
    clock.now += LOOK_EVERY_S
    assert (await access.current()).tls is not before.tls


async def test_a_kubeconfig_that_points_elsewhere_is_followed(
    tmp_path: Path, at_clock: Callable[[Path], Access], clock: Clock
) -> None:
    path = kubeconfigs.write(tmp_path / "config", server="https://old:1")
    access = at_clock(path)
    kubeconfigs.write(path, server="https://newer:1")
    clock.now += LOOK_EVERY_S
    assert (await access.current()).url == "https://newer:1"
