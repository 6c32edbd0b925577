"""Questions have a deadline; a late answer is kept for the next caller, unless it is too old by then."""

from __future__ import annotations

import threading
from collections.abc import Callable

from partage_gpu.nvml import wire
from partage_gpu.nvml.conversation import Conversation
from partage_gpu.nvml.facts import Trouble, Xid
from unit.gpu_discovery.nvml.made import card, node

LONG_S = 60.0
FACTS = wire.SnapshotTaken(node(card("a")))


class Child:
    """A child whose answers a test controls."""

    def __init__(self, *, hears: Callable[[wire.Told], None], ends: Callable[[str], None]) -> None:
        self.started = 0.0
        self.says, self.dies = hears, ends
        self.asked: list[wire.Question] = []
        self.when_asked: Callable[[], object] = lambda: None
        self.is_killed = False

    def send(self, question: wire.Question) -> None:
        self.asked.append(question)
        threading.Thread(target=self.when_asked).start()

    def kill(self) -> None:
        self.is_killed = True


class Talk:
    """A conversation with such a child."""

    def __init__(self) -> None:
        self.woken = 0
        self.xids: list[Xid] = []
        self.now = 1000.0
        self.conversation = Conversation(Child, reported=self.xids.append, wake=self._wake, clock=lambda: self.now)

    def _wake(self) -> None:
        self.woken += 1

    @property
    def child(self) -> Child:
        return self.conversation.process

    def ask(self, *, within_s: float) -> wire.Answer | None:
        return self.conversation.ask(wire.AskSnapshot(), self.now + within_s)


def test_an_answer_is_given_to_who_asked_and_wakes_nobody() -> None:
    talk = Talk()
    talk.child.when_asked = lambda: talk.child.says(FACTS)
    assert talk.ask(within_s=LONG_S) == FACTS
    assert talk.woken == 0


def test_a_question_without_an_answer_is_asked_once_however_often_it_is_put() -> None:
    talk = Talk()
    assert talk.ask(within_s=0) is None
    assert talk.ask(within_s=0) is None
    assert talk.child.asked == [wire.AskSnapshot()]


def test_a_late_answer_wakes_and_is_given_to_the_next_who_asks() -> None:
    talk = Talk()
    talk.ask(within_s=0)
    talk.child.says(FACTS)
    assert talk.woken == 1
    assert talk.ask(within_s=0) == FACTS
    assert talk.ask(within_s=0) is None
    assert len(talk.child.asked) == 2


def test_a_late_answer_wakes_though_somebody_waits_for_another_one() -> None:
    talk = Talk()
    talk.ask(within_s=0)
    talk.child.when_asked = lambda: (talk.child.says(FACTS), talk.child.says(wire.Sampled(())))
    assert talk.conversation.ask(wire.AskSamples(), talk.now + LONG_S) == wire.Sampled(())
    assert talk.woken == 1


def test_a_late_answer_that_is_too_old_is_given_to_nobody() -> None:
    talk = Talk()
    talk.ask(within_s=0)
    talk.child.says(FACTS)
    talk.now += 6
    assert talk.ask(within_s=0) is None
    assert len(talk.child.asked) == 2


def test_a_late_answer_of_before_a_change_is_given_to_nobody() -> None:
    talk = Talk()
    talk.ask(within_s=0)
    talk.child.says(FACTS)
    talk.child.says(wire.Changed())
    assert talk.ask(within_s=0) is None


def test_changes_and_xids_wake() -> None:
    talk = Talk()
    talk.child.says(wire.Changed())
    talk.child.says(wire.Reported(Xid(uuid="a", number=48)))
    assert talk.woken == 2
    assert talk.xids == [Xid(uuid="a", number=48)]


def test_a_death_ends_every_wait_and_says_how() -> None:
    talk = Talk()
    talk.child.when_asked = lambda: talk.child.dies("was killed by SIGKILL")
    assert talk.ask(within_s=LONG_S) is None
    assert talk.conversation.is_over
    assert talk.conversation.trouble.sentence == "the process that asks the NVIDIA driver was killed by SIGKILL"
    assert talk.woken == 0


def test_last_words_say_why_it_is_over() -> None:
    talk, why = Talk(), Trouble(kind="no-driver", sentence="there is none")
    talk.child.says(wire.Ended(why))
    talk.child.dies("exited with 0")
    assert talk.conversation.trouble == why
    assert talk.woken == 1


def test_a_kill_ends_every_wait() -> None:
    talk = Talk()
    talk.child.when_asked = talk.conversation.kill
    assert talk.ask(within_s=LONG_S) is None
    assert talk.child.is_killed


def test_who_answers_is_silent_only_since_it_was_asked() -> None:
    talk = Talk()
    talk.now += 100
    assert talk.conversation.silent_s(talk.now) == 0
    talk.ask(within_s=0)
    talk.now += 30
    assert talk.conversation.silent_s(talk.now) == 30
    talk.child.says(wire.Working())
    talk.now += 10
    assert talk.conversation.silent_s(talk.now) == 10
    assert talk.conversation.waited_s(talk.now) == 40
    talk.child.says(FACTS)
    assert talk.conversation.silent_s(talk.now) == 0
