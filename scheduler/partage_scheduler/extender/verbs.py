"""Dispatches a request's path and body to its verb, and returns the answer.

While this scheduler doesn't lead, or its state may be out of date, the only answer is an error that says so:
kube-scheduler then retries the pod later. A plugin's error affects only the pod of the call.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from logging import INFO
from typing import Final, NamedTuple

from partage_base.daemon.logs import Repeats
from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.authority import Obstacle
from partage_scheduler.extender.bind import BindVerb, Placed
from partage_scheduler.extender.filter import NodeFilter
from partage_scheduler.extender.messages import (
    Args,
    BindingArgs,
    FilterResult,
    PreemptionArgs,
    PreemptionResult,
    PrioritizeArgs,
    Result,
    T,
    Unreadable,
    read,
    write,
)
from partage_scheduler.extender.preempt import PreemptVerb
from partage_scheduler.extender.wire import Ask, Unfit
from partage_scheduler.objects import ApiPod

FILTER, PRIORITIZE, PREEMPT, BIND = "filter", "prioritize", "preempt", "bind"
FITS, NOWHERE, ERROR = "fits", "nowhere", "error"
NO_NAMES: Final = "nodes came otherwise than by their names alone: set nodeCacheCapable: true for this extender"
Observe = Callable[[str, str, float], None]
"""Verb, outcome, and duration in seconds."""


class Answer(NamedTuple):
    """The outcome for metrics, and the message to send."""

    how: str
    message: object


class Verbs:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        *,
        chooser: NodeFilter,
        placer: BindVerb,
        yielding: PreemptVerb,
        obstacle: Callable[[], Obstacle | None],
        observe: Observe,
        answered: Callable[[ApiPod, FilterResult], None],
        broken: Callable[[PluginBroken], None],
    ) -> None:
        """`obstacle` returns why no decision may be made now.

        `answered` is called with filter's result for a pod; `broken` ends the process.
        """
        self._chooser, self._placer, self._yielding = chooser, placer, yielding
        self._obstacle, self._observe = obstacle, observe
        self._answered, self._broken = answered, broken
        self._repeats = Repeats(every_s=10)
        self._reading: dict[str, Callable[[bytes], Answer]] = {
            FILTER: self._filter,
            PRIORITIZE: self._prioritize,
            PREEMPT: self._preempt,
        }

    def answer(self, ask: Ask) -> bytes | Awaitable[bytes]:
        """The body of the answer; raises `Unfit` if there is none."""
        name = ask.path[1:]
        if name == BIND:
            return self._bind(_read(ask.body, BindingArgs))
        question = self._reading.get(name)
        if question is None:
            raise Unfit(404, f"there are /{FILTER}, /{PRIORITIZE}, /{PREEMPT} and /{BIND}")
        started = time.perf_counter()
        how, message = question(ask.body)
        body = write(message)
        self._observe(name, how, time.perf_counter() - started)
        return body

    def _filter(self, body: bytes) -> Answer:
        args = _read(body, Args)
        why = self._against(args.pod) or (NO_NAMES if args.node_names is None else None)
        if why is not None:
            return Answer(ERROR, FilterResult(error=why))
        try:
            result = self._chooser.filter(args, time.monotonic())
        except PartageError as error:
            return Answer(ERROR, FilterResult(error=self._told(_name(args.pod), error)))
        self._answered(args.pod, result)
        return Answer(FITS if result.node_names else NOWHERE, result)

    def _prioritize(self, body: bytes) -> Answer:
        """Without an earlier filter call for the pod, no node is scored."""
        found = self._chooser.prioritize(_read(body, PrioritizeArgs))
        return Answer(FITS if found else NOWHERE, found)

    def _preempt(self, body: bytes) -> Answer:
        args = _read(body, PreemptionArgs)
        why = self._against(args.pod)
        if why is not None:
            raise Unfit(503, why)
        try:
            found = self._yielding.victims(args, time.monotonic())
        except PartageError as error:
            raise Unfit(503, self._told(_name(args.pod), error)) from None
        return Answer(FITS if found else NOWHERE, PreemptionResult(node_name_to_meta_victims=found))

    async def _bind(self, args: BindingArgs) -> bytes:
        started = time.perf_counter()
        pod = f"{args.pod_namespace}/{args.pod_name}"
        how, error = await self._placed(args, pod)
        self._observe(BIND, how, time.perf_counter() - started)
        if error:
            about = {"pod": pod, "node": args.node, "how": how, "why": error}
            self._repeats.say("a pod is not bound as asked", key=how, level=INFO, **about)
        return write(Result(error=error))

    async def _placed(self, args: BindingArgs, pod: str) -> Placed:
        if (obstacle := self._obstacle()) is not None:
            return Placed(ERROR, str(obstacle))
        try:
            return await self._placer.bind(args)
        except PartageError as error:
            return Placed(ERROR, self._told(pod, error))

    def _against(self, pod: ApiPod) -> str | None:
        obstacle = self._obstacle()
        return self._chooser.against(pod) or (None if obstacle is None else str(obstacle))

    def _told(self, pod: str, error: PartageError) -> str:
        if isinstance(error, PluginBroken):
            self._broken(error)
        self._repeats.failed("a pod could not be decided on", error, pod=pod)
        return str(error)


def _name(pod: ApiPod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _read(body: bytes, type_: type[T]) -> T:
    try:
        return read(body, type_)
    except Unreadable as error:
        raise Unfit(400, str(error)) from None
