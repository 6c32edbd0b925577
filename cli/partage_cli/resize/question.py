"""Puts a wish on a pod, and says what became of it; without writing, whether it would be granted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from partage_base.kube import ApiServer, NotFound, pod_path
from partage_cli.looking import looking
from partage_cli.schedulers import told
from partage_plugins.codecs.quantity import format_bytes
from partage_plugins.codecs.resize import GRANTED, REFUSED, WAITS, quoted, read_resize
from partage_plugins.errors import Refused
from partage_plugins.vocabulary import GPU, Allocation, ContainerName
from partage_plugins.vocabulary.keys import GPU_MEMORY, GPU_MILLI, PREFIX, RESIZE, RESIZE_WAIT, RESIZED
from partage_scheduler.objects import ApiPod, Condition
from partage_scheduler.resize import Stays
from partage_scheduler.signatures import as_written

EVERY_S: Final = 0.5
WITHIN_S: Final = 30.0
"""For the scheduler's first word."""
_NOBODY: Final = "no scheduler answered within {:g} s, and the wish was taken back; does partage-scheduler lead?"
_SAID: Final = "pod {}: container {} has {} milli and {} by gen {} of its allocation; its node puts it in force"
_read: Final = as_written((GPU,))


class ResizeQuestion(Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    container: str | None
    share_milli: int | None
    memory: str | None
    waits: bool

    @property
    def path(self) -> str:
        return pod_path(self.namespace, self.name)

    def wish(self, pod: ApiPod) -> str:
        """The annotation; another text than the one on which something was said before."""
        said = {GPU_MILLI: self.share_milli, GPU_MEMORY: self.memory}
        amounts = {key.removeprefix(PREFIX): each for key, each in said.items() if each is not None}
        text = msgspec.json.encode({self._container(pod): amounts}).decode()
        stands = _condition(pod)
        return f"{text} " if stands is not None and stands.message.startswith(quoted(text)) else text

    def _container(self, pod: ApiPod) -> ContainerName:
        if not pod.node:
            raise Refused(f"pod {self.name} is on no node yet; change what it asks for in what it is made from")
        names = sorted(_given(pod).of(GPU))
        if self.container is not None:
            return ContainerName(self.container)
        if len(names) != 1:
            raise Refused(f"pod {self.name} has shares in {', '.join(names) or 'no container'}; name one: --container")
        return names[0]


async def resize(server: ApiServer, question: ResizeQuestion, say: Callable[[str], None]) -> str:
    """What it has then, in a sentence; raises `Refused` where it keeps what it has, and `KubeError`."""
    pod = await _pod(server, question)
    wish, until, heard = question.wish(pod), time.monotonic() + WITHIN_S, False
    await _annotate(server, pod, {RESIZE: wish, RESIZE_WAIT: "yes" if question.waits else None})
    while True:
        found = await _pod(server, question)
        if found.uid != pod.uid:
            raise Refused(f"pod {question.name} is gone, and another one has its name")
        said = _condition(found)
        word = said.reason if said is not None and said.message.startswith(quoted(wish)) else ""
        if _has(found, wish) or word == GRANTED:
            return _granted(found, wish)
        if word == REFUSED and said is not None:
            await _annotate(server, pod, {RESIZE: None, RESIZE_WAIT: None})
            raise Refused(said.message.removeprefix(quoted(wish)))
        if word == WAITS and said is not None and not heard:
            say(f"waits: {said.message.removeprefix(quoted(wish))}")
            heard = True
        if not heard and time.monotonic() > until:
            await _annotate(server, pod, {RESIZE: None, RESIZE_WAIT: None})
            raise Refused(_NOBODY.format(WITHIN_S))
        await asyncio.sleep(EVERY_S)


async def dry_run(server: ApiServer, question: ResizeQuestion, partage: str, root: Path) -> tuple[bool, str]:
    """Whether it would be granted now, and the words."""
    pod = await _pod(server, question)
    wish = question.wish(pod)
    scheduler = await told(server, partage, pod.spec.scheduler_name)
    async with looking(server, scheduler, scheduler.settings(root, partage), root) as looked:
        seat = looked.core.cluster.seats.get(pod.uid)
        if seat is None:
            raise Refused(f"pod {question.name} is on no node")
        notes = {**seat.pod.metadata.annotations, RESIZE: wish}
        seat.pod = replace(seat.pod, metadata=replace(seat.pod.metadata, annotations=notes))
        found = looked.core.resizes.decide(seat, time.monotonic())
    return (False, found.why) if isinstance(found, Stays) else (True, f"{wish.strip()} has room now")


async def _pod(server: ApiServer, question: ResizeQuestion) -> ApiPod:
    try:
        return await server.get(question.path, ApiPod)
    except NotFound:
        raise Refused(f"there is no pod {question.name} in namespace {question.namespace}") from None


async def _annotate(server: ApiServer, pod: ApiPod, notes: dict[str, str | None]) -> None:
    body = {"metadata": {"uid": pod.uid, "annotations": notes}}
    await server.patch(pod_path(pod.namespace, pod.name), body, msgspec.Raw)


def _condition(pod: ApiPod) -> Condition | None:
    return next((each for each in pod.status.conditions if each.type == RESIZED), None)


def _given(pod: ApiPod) -> Allocation:
    found = _read(pod)
    if found is None:
        raise Refused(f"pod {pod.name} has no allocation of partage that can be read; only those are resized")
    return found


def _totals(pod: ApiPod, container: ContainerName) -> tuple[int, int]:
    grants = _given(pod).of(GPU).get(container, ())
    return sum(grant.share_milli for grant in grants), sum(grant.memory_bytes for grant in grants)


def _has(pod: ApiPod, wish: str) -> bool:
    for name, wanted in read_resize(wish).items():
        share, memory = _totals(pod, name)
        if wanted.share_milli not in {None, share} or wanted.memory_bytes not in {None, memory}:
            return False
    return True


def _granted(pod: ApiPod, wish: str) -> str:
    name = next(iter(read_resize(wish)))
    share, memory = _totals(pod, name)
    return _SAID.format(f"{pod.namespace}/{pod.name}", name, share, format_bytes(memory), _given(pod).gen)
