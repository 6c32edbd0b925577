"""Binds pods: one request sets the node and writes the signed allocation, and its outcome is determined with certainty.

An error does not mean that nothing was done: the API server may carry out a request that it did not answer, even later.
So while there is doubt, the same binding is sent again, which can succeed only once, or the pod is read; it counts as
failed only when it can no longer happen. Otherwise its devices might be given to another pod meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

import msgspec

from partage_base.kube import (
    ApiServer,
    Backoff,
    Conflict,
    KubeError,
    MalformedResponse,
    NotFound,
    ServerFailed,
    Throttled,
    Unreachable,
    binding_path,
    pod_path,
)
from partage_plugins.api.keys import ALLOC_PREFIX
from partage_scheduler.objects import ApiPod

WITHIN_S: Final = 4.0
"""Default time limit of a binding at the API server."""
BEYOND_S: Final = 11.0
"""Time after that when the binding can no longer happen: etcd ends a request after 7 s."""
FIRST_AGAIN_S: Final = 0.1
MOST_AGAIN_S: Final = 5.0
TRIES: Final = 4


@dataclass(frozen=True)
class Bound:
    """The pod is on its node, with its allocation."""


@dataclass(frozen=True)
class Already:
    """Another party put the pod on a node."""

    node: str


@dataclass(frozen=True)
class Lost:
    """There is nothing to bind: the pod is gone or being deleted."""

    why: str


@dataclass(frozen=True)
class Failed:
    """The pod is not bound, and will not be by this request."""

    why: str
    may_retry: bool


Outcome = Bound | Already | Lost | Failed


class _BindingMeta(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    uid: str
    annotations: Mapping[str, str]


class _Target(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    api_version: str = "v1"
    kind: str = "Node"


class _Binding(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _BindingMeta
    target: _Target
    api_version: str = "v1"
    kind: str = "Binding"


class Binder:
    """Sends bindings, any number concurrently; the caller limits them."""

    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        *,
        may_bind: Callable[[], bool] = lambda: True,
        within_s: float = WITHIN_S,
        doubt_s: float | None = None,
        first_again_s: float = FIRST_AGAIN_S,
        erred: Callable[[KubeError], None] = lambda _error: None,
    ) -> None:
        """`may_bind` is checked before each request; `erred` is called with each error, for metrics.

        The API server abandons a binding after `within_s`; it is in doubt for `doubt_s`, which by default follows from
        that.
        """
        self._server, self._within_s = server, within_s
        self._doubt_s = within_s + BEYOND_S if doubt_s is None else doubt_s
        self._may_bind, self._first_again_s = may_bind, first_again_s
        self._erred = erred
        self.in_flight = 0
        """Number of bindings under way."""

    async def bind(self, pod: ApiPod, node: str, annotations: Mapping[str, str]) -> Outcome:
        """Returns when the outcome is certain."""
        self.in_flight += 1
        try:
            return await self._bind(pod, node, annotations)
        finally:
            self.in_flight -= 1

    async def _bind(self, pod: ApiPod, node: str, annotations: Mapping[str, str]) -> Outcome:
        meta = _BindingMeta(pod.name, pod.namespace, pod.uid, annotations)
        binding, path = _Binding(meta, _Target(node)), binding_path(pod.namespace, pod.name)
        backoff = Backoff(first_s=self._first_again_s, most_s=MOST_AGAIN_S)
        doubt = _Doubt()
        for tries in count(1):
            if not self._may_bind():
                break
            sent_at = time.monotonic()
            failure = await self._sent(path, binding)
            if failure is None:
                return Bound()
            if (outcome := await self._found(failure, pod, binding, doubt)) is not None:
                return outcome
            if doubt.is_over(sent_at) and (tries >= TRIES or not _is_passing(failure)):
                return Failed(str(failure), may_retry=True)
            await asyncio.sleep(backoff.after(failure))
        return Failed("another scheduler leads now", may_retry=False)

    async def _sent(self, path: str, binding: _Binding) -> KubeError | None:
        try:
            await self._server.create(path, binding, msgspec.Raw, within_s=self._within_s)
        except KubeError as error:
            self._erred(error)
            return error
        return None

    async def _found(self, failure: KubeError, pod: ApiPod, binding: _Binding, doubt: _Doubt) -> Outcome | None:
        """The outcome, if reading the pod makes it certain."""
        if isinstance(failure, NotFound):
            return Lost("it is gone")
        if _may_be_done(failure):
            doubt.until = time.monotonic() + self._doubt_s
        if doubt.until is None and not isinstance(failure, Conflict):
            return None
        looked_at = time.monotonic()
        try:
            outcome = _judged(await self._server.get(pod_path(pod.namespace, pod.name), ApiPod), binding)
        except NotFound:
            return Lost("it is gone")
        except KubeError as error:
            self._erred(error)
            return None
        doubt.looked_at = looked_at
        return outcome


class _Doubt:
    """Whether an unanswered request may still be carried out."""

    def __init__(self) -> None:
        self.until: float | None = None
        """None if there never was any doubt."""
        self.looked_at = float("-inf")
        """When the pod was last read without a node."""

    def is_over(self, sent_at: float) -> bool:
        return self.until is None or min(sent_at, self.looked_at) >= self.until


def _judged(pod: ApiPod, wanted: _Binding) -> Outcome | None:
    if pod.uid != wanted.metadata.uid:
        return Lost("it is gone, and another pod has its name")
    ours = {key: text for key, text in wanted.metadata.annotations.items() if key.startswith(ALLOC_PREFIX)}
    if pod.node == wanted.target.name and ours.items() <= pod.metadata.annotations.items():
        return Bound()  # other annotations are not compared
    if pod.node:
        return Already(pod.node)
    return Lost("it is being deleted") if pod.is_going or pod.is_terminal else None


def _may_be_done(error: KubeError) -> bool:
    return isinstance(error, ServerFailed | MalformedResponse) or (isinstance(error, Unreachable) and error.may_be_done)


def _is_passing(error: KubeError) -> bool:
    """Whether the same request may succeed a moment later."""
    return isinstance(error, Unreachable | Throttled | ServerFailed | MalformedResponse)
