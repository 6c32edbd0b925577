"""A plugin that crashes, hangs, leaks or floods its output affects only its containers; the host goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partage_plugins import Refused
from partage_plugins.api import ContainerKey, NodeName
from partage_plugins.errors import PluginCrashed, PluginError, PluginFailed, PluginHung
from partage_plugins.framework.node import Adjusted
from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.host.messages import Started
from support.procfs import lives
from support.sides import container, granted, granted_raw

pytestmark = pytest.mark.slow  # each test starts processes

OBEDIENT = {"obedient": "support.host_plugins:Obedient"}
KEY = ContainerKey("0" * 32)


@pytest.fixture(autouse=True)
def _child_finds_the_tests_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


class Hosted:
    """A host and its events."""

    def __init__(self, root: Path, **settings: Any) -> None:
        given: dict[str, Any] = {"paths": OBEDIENT, "call_deadline_s": 600.0, "stop_deadline_s": 600.0} | settings
        self.events: list[Started | PluginError] = []
        self.settings = HostSettings(node=NodeName("n1"), root=str(root), **given)
        self.host = PluginHost(self.settings, on_event=self.events.append)

    async def adjust(self, name: str = "main") -> Adjusted:
        return await self.host.adjust(container(name), granted_raw("t0", "t1"))

    async def pid(self) -> int:
        return int((await self.adjust()).adjustment.env["PID"])


@contextlib.asynccontextmanager
async def hosted(root: Path, **settings: Any) -> AsyncGenerator[Hosted, None]:
    it = Hosted(root, **settings)
    try:
        yield it
    finally:
        await it.host.stop()


@contextlib.contextmanager
def hasty(it: Hosted) -> Generator[None]:
    """Limits each call to one second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(it.host, "_settings", replace(it.settings, call_deadline_s=1.0))
        yield


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[Hosted]:
    async with hosted(tmp_path) as it:
        yield it


async def gone(pid: int) -> None:
    """Wait until a process has ended; the test's own time limit is the guard."""
    while lives(pid):  # noqa: ASYNC110  there is no event for somebody else's process
        await asyncio.sleep(0.01)


async def test_start_says_what_was_loaded_and_whose_kinds_are_in_force(it: Hosted) -> None:
    started = await it.host.start()
    assert dict(started.loaded) == OBEDIENT
    assert started.kinds == {"thing": "obedient"}
    assert it.events == [started]


async def test_a_container_is_adjusted_in_the_child(it: Hosted) -> None:
    adjusted = await it.adjust()
    assert adjusted.adjustment.env["THINGS"] == "t0,t1"
    assert adjusted.owners["env THINGS"] == ("obedient",)
    assert int(adjusted.adjustment.env["PID"]) != os.getpid()


async def test_a_refusal_reaches_the_caller_word_for_word(it: Hosted) -> None:
    with pytest.raises(Refused, match=r"^this one cannot have it$"):
        await it.adjust("refuse")


@pytest.mark.parametrize(("name", "what"), [("raises", "ValueError: broken inside"), ("exits", "SystemExit: 7")])
async def test_an_exception_costs_one_call_and_carries_its_traceback(it: Hosted, name: str, what: str) -> None:
    before = await it.pid()
    with pytest.raises(PluginFailed, match="plugin obedient: partage_adjust: raised") as caught:
        await it.adjust(name)
    assert what in str(caught.value)
    assert any("host_plugins.py" in note for note in caught.value.__notes__)
    assert await it.pid() == before


async def test_a_crash_is_tried_once_more_then_names_plugin_hook_and_signal(it: Hosted) -> None:
    before = await it.pid()
    with pytest.raises(PluginCrashed, match="plugin obedient: partage_adjust: its process was killed by SIGSEGV"):
        await it.adjust("segfault")
    assert sum(isinstance(event, PluginCrashed) for event in it.events) == 2
    assert await it.pid() != before


async def test_a_call_whose_child_died_once_is_answered_by_the_next_child(it: Hosted) -> None:
    assert (await it.adjust("segfault-once")).adjustment.env["THINGS"] == "t0,t1"
    assert [type(event) for event in it.events] == [Started, PluginCrashed, Started]


@pytest.mark.parametrize("name", ["hang", "hang-ignoring-signals"])
async def test_a_hang_is_killed_at_its_deadline_and_named(it: Hosted, name: str) -> None:
    before = await it.pid()
    took = "plugin obedient: partage_adjust: took longer than 1 s and was killed"
    with hasty(it), pytest.raises(PluginHung, match=took):
        await it.adjust(name)
    await gone(before)
    assert (await it.adjust()).adjustment.env["THINGS"] == "t0,t1"


async def test_a_plugin_that_eats_memory_meets_its_own_limit(tmp_path: Path) -> None:
    async with hosted(tmp_path, memory_bytes=256 << 20, call_deadline_s=600.0) as it:
        before = await it.pid()
        with pytest.raises(PluginFailed, match="raised MemoryError"):
            await it.adjust("eat")
        assert await it.pid() != before, "a process that ran out of memory is not trusted further"


async def test_what_a_plugin_prints_does_not_reach_stdout(it: Hosted, capfd: pytest.CaptureFixture[str]) -> None:
    await it.adjust("print")
    await it.adjust("print")
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "to stdout" in captured.err


async def test_what_a_plugin_started_ends_with_the_child(it: Hosted, tmp_path: Path) -> None:
    await it.adjust("orphan")
    orphan = int((tmp_path / "orphan").read_text())
    assert lives(orphan)
    await it.host.stop()
    await gone(orphan)


async def test_a_child_that_dies_while_idle_is_replaced_at_the_next_call(it: Hosted) -> None:
    first = int((await it.adjust("die-soon")).adjustment.env["PID"])
    await gone(first)
    assert await it.pid() != first
    assert "its process exited with 9" in str(next(event for event in it.events if isinstance(event, PluginCrashed)))


@pytest.mark.parametrize("name", ["babble", "close-fds"])
async def test_a_child_that_breaks_the_protocol_is_replaced(it: Hosted, name: str) -> None:
    with pytest.raises(PluginCrashed, match="its process"):
        await it.adjust(name)
    assert (await it.adjust()).adjustment.env["THINGS"] == "t0,t1"


async def test_many_callers_at_once_each_get_their_own_answer(it: Hosted) -> None:
    asked = [it.host.adjust(container(), granted_raw(f"t{number}")) for number in range(50)]
    answers = await asyncio.gather(*asked)
    assert [answer.adjustment.env["THINGS"] for answer in answers] == [f"t{number}" for number in range(50)]


async def test_a_caller_that_gives_up_spoils_nothing_for_the_next(it: Hosted) -> None:
    before = await it.pid()
    slow = asyncio.create_task(it.adjust("slow"))
    await asyncio.sleep(0.05)
    slow.cancel()
    answer = await it.host.adjust(container(), granted_raw("next"))
    assert answer.adjustment.env["THINGS"] == "next"
    assert int(answer.adjustment.env["PID"]) == before


async def test_a_caller_that_gives_up_during_the_start_leaves_no_child(it: Hosted) -> None:
    starting = asyncio.create_task(it.host.start())
    await asyncio.sleep(0.02)
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await starting
    assert (await it.adjust()).adjustment.env["THINGS"] == "t0,t1"


async def test_a_plugin_that_dies_at_start_is_named_and_started_again_with_growing_pauses(tmp_path: Path) -> None:
    async with hosted(tmp_path, paths={"bad": "support.host_plugins:CrashesAtStart"}, pauses_s=(0, 3600)) as it:
        for _ in range(2):
            with pytest.raises(PluginCrashed, match="plugin bad: partage_started: its process was killed by SIGABRT"):
                await it.host.start()
        deaths = len(it.events)
        with pytest.raises(PluginCrashed, match="SIGABRT"):
            await it.adjust()
        assert len(it.events) == deaths, "in a long pause nothing is started"


async def test_a_plugin_that_hangs_at_import_is_named(tmp_path: Path) -> None:
    async with hosted(tmp_path, paths={"stuck": "support.host_plugins:HangsAtImport"}, start_deadline_s=1.0) as it:
        with pytest.raises(PluginHung, match="plugin stuck: import: took longer than 1 s"):
            await it.host.start()


async def test_a_plugin_that_cannot_be_imported_costs_no_other(tmp_path: Path) -> None:
    async with hosted(tmp_path, paths=OBEDIENT | {"missing": "no.such:Thing"}) as it:
        started = await it.host.start()
        assert started.kinds == {"thing": "obedient"}
        (fault,) = started.faults
        assert fault.startswith("plugin missing: import: no.such:Thing: ModuleNotFoundError")


async def test_a_blocked_plugin_leaves_its_kind_without_owner(tmp_path: Path) -> None:
    async with hosted(tmp_path, blocked=frozenset({"obedient"})) as it:
        assert (await it.host.start()).blocked == ("obedient",)
        with pytest.raises(Refused, match="no plugin for thing is in force on this node"):
            await it.adjust()


async def test_grants_that_do_not_decode_refuse_the_container_with_their_path(it: Hosted) -> None:
    wrong = granted_raw("t0")
    wrong.grants["thing"] = type(wrong.grants["thing"])(b'[{"id":5}]')  # type: ignore[index, call-arg]
    with pytest.raises(Refused, match=r"allocation: \$.thing\[0\].id is 5"):
        await it.host.adjust(container(), wrong)


async def test_removed_reaches_the_plugins_and_stop_lets_them_end(it: Hosted, tmp_path: Path) -> None:
    await it.host.removed(KEY)
    await it.host.removed(KEY)
    assert (tmp_path / "removed").read_text() == f"{KEY}\n{KEY}\n"
    await it.host.stop()
    await it.host.stop()
    assert (tmp_path / "stopped").exists()


async def test_killing_the_child_from_outside_is_survived_under_load(it: Hosted) -> None:
    for _ in range(5):
        pid = await it.pid()
        load = [asyncio.create_task(it.adjust()) for _ in range(20)]
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        answers = await asyncio.gather(*load)
        assert all(answer.adjustment.env["THINGS"] == "t0,t1" for answer in answers)


async def test_a_parent_that_is_killed_takes_its_child_along(tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.host_parent", str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    assert lives(child)
    parent.kill()
    await parent.wait()
    await gone(child)


async def test_grants_that_are_decoded_already_are_not_lost(it: Hosted) -> None:
    adjusted = await it.host.adjust(container(), granted("t0", "t1"))
    assert adjusted.adjustment.env["THINGS"] == "t0,t1"


async def test_a_caller_that_gives_up_while_a_hung_child_is_ended_leaves_the_next_its_turn(it: Hosted) -> None:
    before = await it.pid()
    process = it.host._child.process  # type: ignore[union-attr]
    with hasty(it):
        hung = asyncio.create_task(it.adjust("hang"))
        await asyncio.sleep(0)  # it reads its deadline here
    end, ending = process.end, asyncio.Event()

    def noticed(*, grace_s: float) -> asyncio.Future[str]:
        ending.set()
        return end(grace_s=grace_s)

    process.end = noticed  # type: ignore[method-assign]
    await ending.wait()
    hung.cancel()
    assert await it.pid() != before
    assert "hangs in the kernel" not in " ".join(map(str, it.events))


async def test_a_caller_that_gives_up_while_the_child_is_connected_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[int] = []
    before = own_children()
    async with hosted(tmp_path) as it:
        loop = asyncio.get_running_loop()

        async def never(*_: object, **given: Any) -> None:
            children.extend(own_children() - before)
            await asyncio.Event().wait()

        monkeypatch.setattr(loop, "create_connection", never)
        starting = asyncio.create_task(it.host.start())
        while not children:  # noqa: ASYNC110  as above
            await asyncio.sleep(0.01)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        monkeypatch.undo()
        await gone(children[0])


def own_children() -> set[int]:
    """This process's children; process ids wrap around, so the greatest is not always the latest."""
    return {int(entry) for entry in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
