"""Computes the health of one GPU over time: ok, degraded with a reason, or lost. Pure: each step is given the time.

A cause opens an episode, and an episode ends after a quiet period in which no look and no XID showed anything wrong.
While it lasts it keeps its most severe cause, so its text changes only for the worse, or once when the card has come
back. A cause that only a reset clears ends when a reset was seen (the card was away, or released, or its error counts
restarted) and a quiet period followed; it also ends after a quiet hour, since not every reset can be seen. Each relapse
doubles the required quiet period, up to an hour; a day of health resets that. This prevents flapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from partage_gpu.discovery.causes import CAME_BACK, MEMORY_ERROR, Away, Cause, Gravity, cause_of, plain, signs_of
from partage_gpu.nvml.facts import CardFacts
from partage_plugins.api.health import OK, CardHealth, HealthCause

LONGEST_QUIET_S: Final = 3600.0
FORGOTTEN_AFTER_S: Final = 86400.0
_ON_TOP: Final = frozenset((HealthCause.PAUSED, HealthCause.NATIVE))
"""Others set these in addition to ours: they do not describe the card itself."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    quiet_s: float = 60.0
    harmless: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A period of bad health."""

    cause: Cause
    wrong_at_s: float
    """The last time that anything was wrong."""
    quiet_s: float

    def is_over(self, now_s: float) -> bool:
        """Whether it was quiet for long enough."""
        needed_s = max(self.quiet_s, LONGEST_QUIET_S) if self.cause.gravity == Gravity.RESET else self.quiet_s
        return now_s - self.wrong_at_s >= needed_s


@dataclass(frozen=True, kw_only=True)
class History:
    """The remembered state of one GPU."""

    episode: Episode | None = None
    relapses: int = 0
    ok_since_s: float | None = None
    """The end of the last episode; None: there was none."""
    uncorrected: int | None = 0
    """Memory errors counted so far; None: all existing ones are old."""


def stepped(
    history: History, now_s: float, *, shown: CardFacts | Away, xids: Iterable[int] = (), rules: Rules
) -> History:
    """The history after one more look, and the XIDs since the previous one."""
    signs, counted = list(signs_of(shown)), _counted(shown, history.uncorrected)
    events = [*_events(xids, rules), *_memory_errors(counted, history.uncorrected)]
    was_reset = counted is not None and history.uncorrected is not None and counted < history.uncorrected
    calmed = _calmed(history, now_s, signs, was_reset=was_reset)
    return replace(_judged(calmed, now_s, [*signs, *events], rules), uncorrected=counted)


def let_go(history: History, now_s: float, *, xids: Iterable[int] = (), rules: Rules) -> History:
    """The history while no look is made: any fault may be repaired meanwhile, and the quiet period begins again."""
    events = list(_events(xids, rules))
    return _watched_again(_judged(history, now_s, events, rules) if events else history, now_s)


def recalled(health: CardHealth, now_s: float, rules: Rules) -> History:
    """The history after a restart, from the last inventory: no fault is over at once."""
    if health.state == "ok" or health.cause is HealthCause.BLIND:  # BLIND is only set on a card that is otherwise ok
        return History(uncorrected=None)
    gravity = Gravity.LOST if health.state == "lost" else Gravity.PASSING
    cause = Cause(gravity, health.cause or HealthCause.OTHER, plain(health.why or ""))
    if health.cause in _ON_TOP:
        cause = CAME_BACK
    return History(episode=Episode(cause=cause, wrong_at_s=now_s, quiet_s=rules.quiet_s), uncorrected=None)


def told(history: History) -> CardHealth:
    return OK if history.episode is None else history.episode.cause.health


def _events(xids: Iterable[int], rules: Rules) -> Iterator[Cause]:
    for number in sorted(set(xids)):
        if (cause := cause_of(number, rules.harmless)) is not None:
            yield cause


def _counted(shown: CardFacts | Away, before: int | None) -> int | None:
    return before if isinstance(shown, Away) or shown.ecc_uncorrected is None else shown.ecc_uncorrected


def _memory_errors(counted: int | None, before: int | None) -> list[Cause]:
    """New errors; a smaller count restarted at 0."""
    if counted is None or before is None or counted == before:
        return []
    return [MEMORY_ERROR] if counted > (before if counted > before else 0) else []


def _calmed(history: History, now_s: float, signs: list[Cause], *, was_reset: bool) -> History:
    """Without a cause that this look shows to be over."""
    if history.episode is None:
        return history
    gravity = min(history.episode.cause.gravity, Gravity.LOST)
    is_gone = history.episode.cause.is_sign and all(sign.gravity < gravity for sign in signs)
    is_mended = gravity == Gravity.RESET and was_reset
    return _watched_again(history, now_s) if is_gone or is_mended else history


def _watched_again(history: History, now_s: float) -> History:
    if history.episode is None:
        return history
    return replace(history, episode=replace(history.episode, cause=CAME_BACK, wrong_at_s=now_s))


def _judged(history: History, now_s: float, causes: list[Cause], rules: Rules) -> History:
    """With the current causes, or without an episode that is over."""
    episode = history.episode
    if causes:
        worst = max(causes, key=lambda cause: cause.gravity)
        if episode is None:
            return _opened(history, now_s, worst, rules)
        return replace(history, episode=replace(episode, cause=_graver(episode.cause, worst), wrong_at_s=now_s))
    if episode is not None and episode.is_over(now_s):
        return replace(history, episode=None, ok_since_s=now_s)
    return history


def _graver(before: Cause, now: Cause) -> Cause:
    """Among equal ones the first keeps its text; but the reason why a card is away is always the current one."""
    is_news = now.gravity > before.gravity or now.gravity == before.gravity == Gravity.LOST
    return now if is_news else before


def _opened(history: History, now_s: float, cause: Cause, rules: Rules) -> History:
    relapses = 0
    if history.ok_since_s is not None and now_s - history.ok_since_s < FORGOTTEN_AFTER_S:
        relapses = history.relapses + 1
    most_s = max(rules.quiet_s, LONGEST_QUIET_S)
    quiet_s = min(rules.quiet_s * 2.0 ** min(relapses, 16), most_s)
    return replace(
        history, episode=Episode(cause=cause, wrong_at_s=now_s, quiet_s=quiet_s), relapses=relapses, ok_since_s=None
    )
