"""What a pod needs next, from what is known of it. Pure: facts in, one step out; whoever does it brings new facts.

A pod is *over* when nothing of it is to be started any more: then its sandbox is stopped, and its share is free. It
is at *rest* when its sandbox is stopped and it is over, or a person stopped it.

A container that ended without a real status (`lost`: the machine was switched off, the runtime died) has failed.
Whatever happens, a container of policy `no` begins once after each start by a person, and one of `on-failure:N` at
most N+1 times: the numbers of attempts, which the runtime keeps, say how often it began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from partage_cli.machine.pods.record import Past, Record
from partage_cli.machine.wire.messages import Phase

Will = Literal["run", "start", "stop", "remove"]
"""What the pod is meant to do: as its policy says; start once more; or what a person asked for."""
SANDBOX: Final = ""
"""Stands for the sandbox among the names of containers."""
LOST_CODE: Final = 255


class Seen(Struct, frozen=True):
    """The last attempt of a container in the pod's newest sandbox."""

    attempt: int
    state: Literal["created", "running", "exited", "lost"]
    exit_code: int = 0

    @property
    def has_ended(self) -> bool:
        return self.state in {"exited", "lost"}

    @property
    def has_failed(self) -> bool:
        return self.state == "lost" or (self.state == "exited" and self.exit_code != 0)


class Facts(Struct, frozen=True, kw_only=True):
    record: Record
    ready: bool
    """Whether its newest sandbox runs."""
    containers: Mapping[str, Seen]
    will: Will = "run"
    given_up: frozenset[str] = frozenset()
    """Containers that could not begin, and whose policy does not try again."""
    due: Mapping[str, float] = {}
    """When each may be tried again, for those that must wait."""
    now: float


class Place(Struct, frozen=True):
    """A new sandbox, with a place on the cards; its record has this past."""

    past: Past


class Create(Struct, frozen=True):
    name: str
    attempt: int


class Begin(Struct, frozen=True):
    """Start a container that was created."""

    name: str


class Halt(Struct, frozen=True):
    """Stop its containers, then its sandbox."""


class Remove(Struct, frozen=True):
    """Its containers, its sandboxes, and its name."""


class Rest(Struct, frozen=True):
    """Nothing, until something happens or it is that late."""

    until: float | None = None


Step = Place | Create | Begin | Halt | Remove | Rest


def next_step(pod: Facts) -> Step:
    is_up = pod.ready or _is_live(pod)
    if pod.will == "remove":
        return Remove()
    if pod.will == "stop" or (pod.will == "run" and is_over(pod)):
        goes = pod.will == "run" and pod.record.remove
        return Halt() if is_up else Remove() if goes else Rest()
    if pod.ready:
        return _next_start(pod)
    if is_up:  # its sandbox died, and a container did not die with it
        return Halt()
    due = pod.due.get(SANDBOX, pod.now)
    return Rest(due) if due > pod.now else Place(past_of(pod))


def is_over(pod: Facts) -> bool:
    """Nothing of it is to be started any more, and nothing runs that could change that."""
    if not pod.ready and pod.record.restart == "no":
        return not _is_live(pod)
    for name in _inits(pod.record):
        seen = pod.containers.get(name)
        if not (seen and seen.has_ended) or seen.has_failed:
            return not _goes_on(pod, name)
    return not any(_goes_on(pod, name) for name in apps_of(pod.record))


def is_at_rest(pod: Facts) -> bool:
    return not pod.ready and not _is_live(pod) and (pod.will == "stop" or (pod.will == "run" and is_over(pod)))


def phase_of(pod: Facts) -> Phase:
    if any(seen.state == "running" for name, seen in pod.containers.items() if name in apps_of(pod.record)):
        return "running"
    if pod.will == "stop":
        return "stopped"
    if pod.will == "remove" or (pod.will == "run" and is_over(pod)):
        return "exited"
    return "restarting" if _began(pod) else "starting"


def exit_code_of(pod: Facts) -> int:
    """The first that is not 0, init containers first; of a pod that has ended."""
    ended = (pod.containers.get(name) for name in (*_inits(pod.record), *apps_of(pod.record)))
    codes = (LOST_CODE if seen.state == "lost" else seen.exit_code for seen in ended if seen is not None)
    return next((code for code in codes if code), LOST_CODE if pod.given_up else 0)


def will_of(pod: Facts) -> Will:
    """What a manager takes a pod to be meant to do that it finds when it starts.

    A stopped sandbox whose containers ended with real statuses was stopped by a manager: since the pod was over, or
    since a person said so. Power that fails, or a runtime that dies, leaves other traces. What was never whole, since
    a manager died while it made it for the first time, is removed: no one was told that it is there.
    """
    if not pod.containers and not pod.record.past.attempts:
        return "remove"
    if not pod.ready and pod.containers and all(seen.state == "exited" for seen in pod.containers.values()):
        return "run" if is_over(pod) else "stop"
    return "run"


def past_of(pod: Facts) -> Past:
    """For the record of the pod's next sandbox."""
    past = pod.record.past
    attempts = {**past.attempts, **{name: seen.attempt + 1 for name, seen in pod.containers.items()}}
    if pod.will == "start":
        return Past(attempts=attempts, since=attempts)
    done = tuple(name for name in apps_of(pod.record) if not _goes_on(pod, name))
    return Past(attempts=attempts, since=past.since, done=done)


def restarts_of(pod: Facts, name: str) -> int:
    """How often a container was started again since a person started the pod."""
    seen = pod.containers.get(name)
    past = pod.record.past
    attempt = past.attempts.get(name, 0) if seen is None else seen.attempt
    return attempt - past.since.get(name, 0)


def apps_of(record: Record) -> tuple[str, ...]:
    return tuple(container.name for container in record.pod.spec.containers)


def _inits(record: Record) -> tuple[str, ...]:
    return tuple(container.name for container in record.pod.spec.init_containers)


def _is_live(pod: Facts) -> bool:
    return any(seen.state == "running" for seen in pod.containers.values())


def _began(pod: Facts) -> bool:
    """Whether any of it had begun before what is being done now."""
    apps = apps_of(pod.record)
    ended = any(seen.has_ended for name, seen in pod.containers.items() if name in apps)
    return ended or any(restarts_of(pod, name) > 0 for name in (*_inits(pod.record), *apps))


def _goes_on(pod: Facts, name: str) -> bool:
    """Whether a container runs, or is to be started, some time."""
    seen = pod.containers.get(name)
    if seen is None or seen.state == "created":
        return name not in pod.given_up and (seen is not None or name not in pod.record.past.done)
    if not seen.has_ended:
        return True
    record = pod.record
    if record.restart == "on-failure":
        most = record.most_restarts
        return seen.has_failed and (most == 0 or restarts_of(pod, name) < most)
    return record.restart != "no"


def _next_start(pod: Facts) -> Step:
    """In a sandbox that is ready: one init container after the other, then all others at once."""
    for name in _inits(pod.record):
        seen = pod.containers.get(name)
        if seen is None or not seen.has_ended or seen.has_failed:
            return _step_of(pod, name)
    steps = list(_app_steps(pod))
    action = next((step for step in steps if not isinstance(step, Rest)), None)
    if action is not None:
        return action
    times = [step.until for step in steps if isinstance(step, Rest) and step.until is not None]
    return Rest(min(times, default=None))


def _app_steps(pod: Facts) -> Iterator[Step]:
    for name in apps_of(pod.record):
        if _goes_on(pod, name):
            yield _step_of(pod, name)


def _step_of(pod: Facts, name: str) -> Step:
    seen = pod.containers.get(name)
    if seen is not None and seen.state == "running":
        return Rest()
    if (due := pod.due.get(name, pod.now)) > pod.now:
        return Rest(due)
    if seen is None:
        return Create(name, pod.record.past.attempts.get(name, 0))
    return Begin(name) if seen.state == "created" else Create(name, seen.attempt + 1)
