"""Requests a resize by an annotation on the pod, and waits for the outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from partage_base.kube import ApiServer, NotFound, pod_path
from partage_plugins.api import GPU, ContainerName
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI, PREFIX, RESIZE, RESIZE_WAIT
from partage_plugins.codecs.resize import GRANTED, REFUSED, WAITS
from partage_plugins.errors import Refused
from partage_scheduler.objects import ApiPod
from partage_scheduler.resize.outcome import said_of
from partage_scheduler.signatures import as_written

EVERY_S: Final = 0.5
WITHIN_S: Final = 30.0
"""For the scheduler's first reply."""
_NOBODY: Final = "no scheduler answered within {:g} s, and the wish was taken back; does partage-scheduler lead?"
_HAS: Final = "pod {} has {} by {}; its node puts it in force"
_read: Final = as_written((GPU,))


class ResizeQuestion(Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    container: str | None
    share_milli: int | None
    memory: str | None
    waits: bool

    def wish(self, pod: ApiPod) -> str:
        """The annotation's text; a trailing space makes it differ from a request that was already answered."""
        said = {GPU_MILLI: self.share_milli, GPU_MEMORY: self.memory}
        amounts = {key.removeprefix(PREFIX): each for key, each in said.items() if each is not None}
        text = msgspec.json.encode({self._container(pod): amounts}).decode()
        return f"{text} " if said_of(pod, text)[0] else text

    def _container(self, pod: ApiPod) -> ContainerName:
        if not pod.node:
            raise Refused(f"pod {self.name} is on no node yet; change what it asks for in what it is made from")
        if self.container is not None:
            return ContainerName(self.container)
        if (given := _read(pod)) is None:
            raise Refused(f"pod {pod.name} has no allocation of partage that can be read; only those are resized")
        names = sorted(given.of(GPU))
        if len(names) != 1:
            raise Refused(f"pod {self.name} has shares in {', '.join(names) or 'no container'}; name one: --container")
        return names[0]


async def resize(server: ApiServer, question: ResizeQuestion, say: Callable[[str], None]) -> str:
    """Request the resize; returns the new amounts as a sentence. Raises `Refused` if it is denied, and `KubeError`."""
    pod = await _pod(server, question)
    wish, until, heard = question.wish(pod), time.monotonic() + WITHIN_S, False
    await _annotate(server, pod, {RESIZE: wish, RESIZE_WAIT: "yes" if question.waits else None})
    while True:
        found = await _pod(server, question)
        if found.uid != pod.uid:
            raise Refused(f"pod {question.name} is gone, and another one has its name")
        reason, why = said_of(found, wish)
        if reason == GRANTED:
            return _HAS.format(f"{pod.namespace}/{pod.name}", wish.strip(), why)
        if reason == WAITS and not heard:
            say(f"waits: {why}")
            heard = True
        if reason == REFUSED or (not heard and time.monotonic() > until):
            await _annotate(server, pod, {RESIZE: None, RESIZE_WAIT: None})
            raise Refused(why or _NOBODY.format(WITHIN_S))
        await asyncio.sleep(EVERY_S)


async def _pod(server: ApiServer, question: ResizeQuestion) -> ApiPod:
    try:
        return await server.get(pod_path(question.namespace, question.name), ApiPod)
    except NotFound:
        raise Refused(f"there is no pod {question.name} in namespace {question.namespace}") from None


async def _annotate(server: ApiServer, pod: ApiPod, notes: dict[str, str | None]) -> None:
    body = {"metadata": {"uid": pod.uid, "annotations": notes}}
    await server.patch(pod_path(pod.namespace, pod.name), body, msgspec.Raw)
