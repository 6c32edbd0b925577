"""A pod in front of its user: what its containers write, the signals that are meant for them, and how they ended.

One loop over descriptors: a conversation for each log, one for the end, one for each signal that is passed on. Where
the manager goes away, as for an upgrade, the pod runs on, and the loop goes on from the last line that was shown.
"""

from __future__ import annotations

import selectors
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

from partage_cli.machine.commands.connection import say
from partage_cli.machine.commands.signals import Signals
from partage_cli.machine.wire.client import Conversation, Denied, ManagerAway, ManagerNonsense, conversation, granted
from partage_cli.machine.wire.messages import (
    Answer,
    DoneWait,
    LogLine,
    Logs,
    PodStatus,
    Question,
    Signal,
    Stop,
    Wait,
)

_AGAIN_S: Final = 0.3
_Took = Callable[[Answer], None]


class Screen:
    """Lines of containers, each on the stream that it was written to; of several, behind the container's name."""

    def __init__(self, *, named: bool, timed: bool = False) -> None:
        self._named, self._timed = named, timed
        self._streams: Final[Mapping[str, BinaryIO]] = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
        self._within = set[tuple[str, str]]()
        """Containers and streams whose last line goes on."""

    def show(self, container: str, line: LogLine) -> None:
        key = (container, line.stream)
        words = [container, "|"] if self._named else []
        head = "" if key in self._within else " ".join([*words, *([line.at] if self._timed else []), ""]).lstrip()
        (self._within.add if line.part else self._within.discard)(key)
        self._streams[line.stream].write(head.encode() + line.data + (b"" if line.part else b"\n"))

    def flush(self) -> None:
        for stream in self._streams.values():
            stream.flush()


class _Log:
    """What was shown of one container, so that it goes on after that."""

    def __init__(self, container: str, tail: int | None) -> None:
        self.container, self._tail = container, tail
        self.ended = False
        self._shown = ""
        self._skipped_to = 0

    def question(self, name: str) -> Logs:
        """From its first line where any was shown, since they have no other place to begin at."""
        self._skipped_to = _at_ns(self._shown)
        tail = None if self._shown else self._tail
        return Logs(name=name, container=self.container, follow=True, tail=tail)

    def is_new(self, line: LogLine) -> bool:
        if self._skipped_to and _at_ns(line.at) <= self._skipped_to:
            return False
        self._skipped_to = 0
        self._shown = line.at or self._shown
        return True


@dataclass(frozen=True)
class _Watch:
    """What the loop waits for."""

    root: Path
    selector: selectors.BaseSelector
    stack: ExitStack

    def ask(self, question: Question, took: _Took) -> None:
        talk, _ = self.stack.enter_context(conversation(self.root))
        talk.ask(question)
        self.selector.register(talk, selectors.EVENT_READ, (talk, took))

    def answered(self, talk: Conversation) -> None:
        self.selector.unregister(talk)
        talk.close()


class Foreground:
    def __init__(
        self, root: Path, pod: PodStatus, signals: Signals, *, written: bool = True, tail: int | None = None
    ) -> None:
        """`written` is false where what the containers write comes another way; `tail` is of what they wrote before."""
        self._root, self._pod, self._signals = root, pod, signals
        names = [each.name for each in pod.containers]
        self._logs = [_Log(name, tail) for name in names] if written else []
        self._screen = Screen(named=len(names) > 1)
        self._interrupts = 0
        self._exit_code: int | None = None

    def run(self) -> int:
        """Until the pod has ended and all that it wrote is shown; its exit code."""
        while True:
            try:
                with self._followed() as watch:
                    while (code := self._ended()) is None:
                        self._step(watch)
                    return code
            except ManagerAway as away:
                self._wait_for_manager(away)

    def _ended(self) -> int | None:
        return self._exit_code if all(log.ended for log in self._logs) else None

    @contextmanager
    def _followed(self) -> Generator[_Watch]:
        """All that is not ended, from its beginning."""
        with ExitStack() as stack:
            watch = _Watch(self._root, stack.enter_context(selectors.DefaultSelector()), stack)
            watch.selector.register(self._signals, selectors.EVENT_READ)
            for log in self._logs:
                if not log.ended:
                    watch.ask(log.question(self._pod.uid), self._line(log))
            if self._exit_code is None:
                watch.ask(Wait(name=self._pod.uid), self._end)
            yield watch

    def _step(self, watch: _Watch) -> None:
        for key, _ in watch.selector.select():
            if key.fileobj is self._signals:
                for number in self._signals.taken():
                    self._pass_on(watch, number)
                continue
            talk, took = key.data
            answers = talk.ready()
            for answer in answers:
                took(answer)
            if answers and not isinstance(answers[-1], LogLine):
                watch.answered(talk)
        self._screen.flush()

    def _line(self, log: _Log) -> _Took:
        def took(answer: Answer) -> None:
            if isinstance(answer, LogLine):
                if log.is_new(answer):
                    self._screen.show(log.container, answer)
                return
            granted(answer)
            log.ended = True

        return took

    def _end(self, answer: Answer) -> None:
        ended = granted(answer)
        if not isinstance(ended, DoneWait):
            raise ManagerNonsense("the manager answered a wait with something else; are both of one version?")
        self._exit_code = ended.exit_code

    def _pass_on(self, watch: _Watch, number: int) -> None:
        self._interrupts += number == signal.SIGINT
        if number == signal.SIGINT and self._interrupts > 1:
            say(f"ending {self._pod.name} at once")
            watch.ask(Stop(name=self._pod.uid, grace_s=0), _passed_on)
            return
        if number == signal.SIGINT and sys.stderr.isatty():
            say(f"passed on to {self._pod.name}; once more ends it at once")
        watch.ask(Signal(name=self._pod.uid, number=number), _passed_on)

    def _wait_for_manager(self, away: ManagerAway) -> None:
        say(f"{away}; {self._pod.name} runs on, and this waits for the manager; Ctrl-C leaves it running")
        with selectors.DefaultSelector() as selector:
            selector.register(self._signals, selectors.EVENT_READ)
            while True:
                if selector.select(_AGAIN_S):
                    self._signals.taken()
                    raise away
                try:
                    with conversation(self._root):
                        return
                except ManagerAway:
                    continue


def _passed_on(answer: Answer) -> None:
    """One that came too late changes nothing."""
    try:
        granted(answer)
    except Denied as denied:
        say(f"not passed on: {denied}")


def _at_ns(text: str) -> int:
    """Of a log's line, whose fraction has up to nine digits, and fewer where it ends in zeros; 0 of one without."""
    if not text:
        return 0
    whole, _, fraction = text.partition(".")
    digits = fraction[: len(fraction) - len(fraction.lstrip("0123456789"))]
    zone = fraction[len(digits) :] if fraction else ""
    seconds = datetime.fromisoformat(whole + zone).timestamp()
    return int(seconds) * 1_000_000_000 + int(digits.ljust(9, "0") or "0")
