"""The search: keeps inputs that reach something new, and derives further inputs from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fuzz.engine.execution import Executor, Failure
from fuzz.engine.minimising import shortened
from fuzz.engine.mutation import Mutator
from fuzz.engine.reach import REPORTS_ONCE, Reach

WATCH_EVERY: Final = 1 if REPORTS_ONCE else 2

MOST_OUTCOMES: Final = 100
"""With more kinds than this the target's outcomes vary with the input, and no longer guide the search."""

_HALF: Final = 0.5

Clock = Callable[[], float]
Journal = Callable[[bytes], None]


@dataclass
class Tally:
    executions: int = 0
    outcomes: int = 0
    kept: int = 0
    lines: int = 0


class Campaign:
    """One search with one seed. The same seed takes the same path, given the same time."""

    def __init__(self, executor: Executor, reach: Reach, mutator: Mutator, journal: Journal) -> None:
        self._executor = executor
        self._reach = reach
        self._mutator = mutator
        self._journal = journal
        self._corpus: list[bytes] = []
        self._outcomes: set[str] = set()
        self._executions = 0

    @property
    def tally(self) -> Tally:
        return Tally(self._executions, len(self._outcomes), len(self._corpus), len(self._reach.lines))

    def search(self, seeds: Sequence[bytes], *, until: float, clock: Clock) -> Failure | None:
        """The first failure, or None when the time is up."""
        with self._reach.reporting():
            for data in (b"", *seeds):
                self._corpus.append(data)
                if (failure := self._try(data, closely=True)) is not None:
                    return failure
            while clock() < until:
                data = self._mutator.changed(self._pick(), self._corpus)
                if (failure := self._try(data, closely=self._executions % WATCH_EVERY == 0)) is not None:
                    return failure
        return None

    def minimised(self, failure: Failure, *, until: float, clock: Clock) -> Failure:
        """A shorter input that fails in the same way."""
        if not failure.is_quick:
            return failure
        best = failure

        def still_fails(data: bytes) -> bool:
            nonlocal best
            found = self._run(data)
            same = isinstance(found, Failure) and found.kind == failure.kind
            best = found if same and isinstance(found, Failure) else best
            return same

        data = shortened(failure.data, still_fails, has_time=lambda: clock() < until)
        return replace(best, data=data)

    def _pick(self) -> bytes:
        """Prefers newer entries, where the search got to, and shorter ones, in which a change matters more."""
        rng, size = self._mutator.rng, len(self._corpus)
        one, other = rng.randrange(size), rng.randrange(size)
        if rng.random() < _HALF:
            return self._corpus[max(one, other)]
        return min(self._corpus[one], self._corpus[other], key=len)

    def _run(self, data: bytes) -> Failure | str:
        self._executions += 1
        self._journal(data)
        return self._executor.run(data)

    def _try(self, data: bytes, *, closely: bool) -> Failure | None:
        known = len(self._reach.lines)
        with self._reach.watching(closely=closely):
            result = self._run(data)
        if isinstance(result, Failure):
            return result
        is_new = result not in self._outcomes and len(self._outcomes) < MOST_OUTCOMES
        if is_new:
            self._outcomes.add(result)
        if is_new or len(self._reach.lines) > known:
            self._corpus.append(data)
        return None
