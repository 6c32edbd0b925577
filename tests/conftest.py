"""For every test: one way of running hypothesis, and no test may leave anything behind."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import threading
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import cast

import pytest
from hypothesis import HealthCheck, settings

from rig.patience import patience_s
from support import extent, leftovers
from support.loops import LOOPS

# Nothing depends on the clock or on earlier runs, so that a slow machine and a fresh checkout see the same tests.
_SAME = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
for _each in ("default", "quick"):
    settings.register_profile(_each, _SAME, max_examples=extent.examples(100), derandomize=True)
settings.register_profile("long", _SAME, max_examples=5000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_FDS = "/proc/self/fd"
_GRACE_S = 20.0


def pytest_configure() -> None:
    # What tests make is seldom circular: to look for it as often as usual takes a tenth of the time of all.
    gc.set_threshold(20_000, 20, 50)
    # A shell's job in the background ignores it, and so would the programs that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run = os.environ[leftovers.MARK] = str(uuid.uuid4())
    leftovers.watch(os.getpid(), run)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look at it again and again."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Of a run with failures: which steps it drew, those of parametrised tests too, and how to draw them again."""
    if terminalreporter.stats.keys() & {"failed", "error"}:
        for line in extent.draws():
            terminalreporter.write_line(line)


@pytest.fixture
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """The loop of an async test and of its async fixtures: uvloop's where the fixture `loop` says so."""
    loop = str(request.getfixturevalue("loop")) if "loop" in request.fixturenames else "asyncio"
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        yield runner


def pytest_itemcollected(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.fixturenames.append("runner")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    runner = cast("asyncio.Runner", pyfuncitem.funcargs["runner"])
    runner.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """A fixture that is an async generator runs in the test's loop, before the test and after it."""
    story = fixturedef.func
    if not inspect.isasyncgenfunction(story):
        return (yield)
    runner: asyncio.Runner = request.getfixturevalue("runner")

    def played(**parts: object) -> Iterator[object]:
        generator = story(**parts)
        yield runner.run(anext(generator))
        runner.run(anext(generator, None))

    fixturedef.func = played  # type: ignore[misc]
    try:
        return (yield)
    finally:
        fixturedef.func = story  # type: ignore[misc]


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test that leaves a thread, an asyncio task or loop, or a file descriptor."""
    loops: list[asyncio.AbstractEventLoop] = []
    new_loop = asyncio.events.new_event_loop

    def remembered() -> asyncio.AbstractEventLoop:
        loops.append(new_loop())
        return loops[-1]

    threads, files = set(threading.enumerate()), _open_files()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.events, "new_event_loop", remembered)
        patch.setattr(asyncio, "new_event_loop", remembered)
        yield
    left = [f"task {task.get_name()}" for loop in loops for task in asyncio.all_tasks(loop)]
    left += [f"event loop {loop!r}" for loop in loops if not loop.is_closed()]
    left += [f"thread {thread.name}" for thread in _still_alive(set(threading.enumerate()) - threads)]
    left += [f"file descriptor {fd} of {name}" for fd, name in _files_since(files)]
    if left:
        pytest.fail("the test left behind: " + ", ".join(left), pytrace=False)


def _still_alive(threads: set[threading.Thread]) -> list[threading.Thread]:
    """Those that do not end by themselves; one that was told to end may need a moment."""
    for thread in threads:
        thread.join(patience_s(_GRACE_S))
    return [thread for thread in threads if thread.is_alive()]


def _files_since(before: dict[int, str]) -> list[tuple[int, str]]:
    if _open_files().items() <= before.items():
        return []
    gc.collect()  # what is closed with its owner is not left behind
    return sorted(_open_files().items() - before.items())


def _open_files() -> dict[int, str]:
    found: dict[int, str] = {}
    for name in os.listdir(_FDS):  # noqa: PTH208  twice for every test: paths would take four times as long
        with suppress(FileNotFoundError):  # the descriptor of this very listing
            found[int(name)] = os.readlink(f"{_FDS}/{name}")  # noqa: PTH115
    return found
