"""Hands allocations that changed while their pods ran to crishim, which has no way to the API server: a file for each.

Each look asks about every pod that the broker of this node knows, with one GET each: the account may read pods by name
alone. Nothing is believed here: crishim verifies what is in a file. What can't be asked or written is tried again; the
file of a pod that is gone is taken away.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from partage_advertiser.broker_page import BrokerPage
from partage_base.daemon.logs import Repeats
from partage_base.files import write_whole
from partage_base.kube import ApiServer, KubeError, NotFound, pod_path
from partage_base.kube.objects import Meta
from partage_plugins.codecs.resize import NewAllocation
from partage_plugins.vocabulary import PodRef
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from partage_plugins.vocabulary.limits import MAX_ANNOTATION_BYTES
from partage_plugins.vocabulary.places import RESIZES_FOLDER

EVERY_S: Final = 5.0
SUFFIX: Final = ".json"


class _AllocatedPod(msgspec.Struct, frozen=True):
    metadata: Meta


class _Gen(msgspec.Struct, frozen=True):
    gen: int = 1


class _OfBroker(msgspec.Struct, frozen=True):
    pod: PodRef
    is_claim: bool = False


class _Told(msgspec.Struct, frozen=True):
    containers: tuple[_OfBroker, ...] = ()


_TOLD: Final = msgspec.json.Decoder(_Told)


class ResizeFiles:
    def __init__(self, server: ApiServer, root: Path) -> None:
        self._server, self._broker, self._folder = server, BrokerPage(root), root / RESIZES_FOLDER
        self._repeats = Repeats(every_s=60)

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Asks about each pod once, and makes the files so; where the broker is away they stay."""
        pods = await self._pods()
        if pods is None:
            return
        try:
            there = {path.stem: path for path in self._folder.glob(f"*{SUFFIX}")}
            for uid in there.keys() - {pod.uid for pod in pods}:
                there.pop(uid).unlink(missing_ok=True)
            contents = await asyncio.gather(*[self._content(pod) for pod in pods])
            for pod, content in zip(pods, contents, strict=True):
                if content and not (pod.uid in there and there[pod.uid].read_bytes() == content):
                    self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    write_whole(self._folder / f"{pod.uid}{SUFFIX}", content)
            if not there and not any(contents) and self._folder.exists():
                self._folder.rmdir()
        except OSError as error:
            self._repeats.failed("allocations that changed can't be handed to crishim; is the disk full?", error)

    async def _pods(self) -> tuple[PodRef, ...] | None:
        """Those with limits here; None where the broker does not say."""
        answer = await self._broker()
        try:
            told = _TOLD.decode(answer.body) if answer.status == 200 else None  # noqa: PLR2004  it answered
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self._repeats.failed("what the broker tells can't be read, so who is resized waits", error)
            return None
        return None if told is None else tuple({each.pod for each in told.containers if not each.is_claim})

    async def _content(self, pod: PodRef) -> bytes:
        """Of its file; empty for one that was never resized, that is gone, or that can't be asked about now."""
        try:
            meta = (await self._server.get(pod_path(pod.namespace, pod.name), _AllocatedPod)).metadata
        except NotFound:
            return b""
        except KubeError as error:
            self._repeats.failed("a pod can't be asked about, so if it is resized it waits", error)
            return b""
        return content_of(pod, meta)


def content_of(pod: PodRef, meta: Meta) -> bytes:
    text, signature = meta.annotations.get(ALLOCATION, ""), meta.annotations.get(SIGNATURE, "")
    if meta.uid != pod.uid or len(text) > MAX_ANNOTATION_BYTES:
        return b""
    try:
        is_first = msgspec.json.decode(text, type=_Gen).gen <= 1
    except (msgspec.MsgspecError, ValueError, RecursionError):  # no scheduler writes that
        return b""
    return b"" if is_first else msgspec.json.encode(NewAllocation(pod=pod, allocation=text, signature=signature))
