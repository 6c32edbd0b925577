"""Hands changed allocations of running pods to crishim, which has no access to the API server: one file per pod.

The scheduler lists these pods on the node's Lease. So one watch of one object covers any number of pods, each is read
once per change, and no node needs permission to list pods, its own or others'. Nothing is trusted here: crishim
verifies each file. Failures are retried with the next heartbeat, which changes the Lease. That heartbeat also publishes
what crishim reports on suspended pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Final

import msgspec

from partage_base.daemon.logs import Repeats
from partage_base.files import write_whole
from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    KubeError,
    Lease,
    Listed,
    Lost,
    Meta,
    Undecodable,
    follow,
    leases_path,
    pod_path,
)
from partage_plugins.api import PodRef, PodUid
from partage_plugins.api.keys import ALLOCATION, RESIZED_PODS, SIGNATURE
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES
from partage_plugins.api.places import RESIZES_FOLDER, SUSPENDED_FILE
from partage_plugins.codecs.resize import READ_RESIZED_PODS, NewAllocation, ResizedPod
from partage_plugins.codecs.suspension import READ_REPORTS
from partage_plugins.errors import DecodeError

MOST_REPORTED_BYTES: Final = 64 << 10
FIRST_S: Final = 0.5
MOST_S: Final = 5.0


class _AllocatedPod(msgspec.Struct, frozen=True):
    metadata: Meta


class ResizeFiles:
    def __init__(self, server: ApiServer, root: Path, *, namespace: str, node: str) -> None:
        self._server, self._folder = server, root / RESIZES_FOLDER
        self._namespace, self._node = namespace, node
        self._gens: dict[PodUid, int] = {}
        """The generation handed over, by uid."""
        self._repeats = Repeats(every_s=60)

    async def run(self) -> None:
        """Follow the Lease of this node until cancelled."""
        leases, only = leases_path(self._namespace), f"metadata.name={self._node}"
        backoff = Backoff(first_s=FIRST_S, most_s=MOST_S)
        async for seen in follow(self._server, leases, Lease, fields=only, backoff=backoff):
            match seen:
                case Changed(lease) | Listed((lease,)):
                    await self._look(lease)
                case Lost(error):
                    self._repeats.failed("who is resized waits: the Lease of this node can't be followed", error)
                case Undecodable():
                    self._repeats.say("who is resized waits: the Lease of this node can't be read", why=seen.why)
                case _:  # no Lease: files stay
                    pass

    async def _look(self, lease: Lease) -> None:
        """Write the files of the listed pods, and delete those of other pods."""
        try:
            pods = READ_RESIZED_PODS.read(lease.metadata.annotations.get(RESIZED_PODS, "{}"))
            for path in self._folder.glob("*.json"):
                if path.stem not in pods:
                    path.unlink(missing_ok=True)
            if not pods and self._folder.exists():
                self._folder.rmdir()
            await self._hand_over(pods)
        except (DecodeError, OSError) as error:
            self._repeats.failed("allocations that changed can't be handed to crishim; is the disk full?", error)

    async def _hand_over(self, pods: Mapping[PodUid, ResizedPod]) -> None:
        self._gens = {uid: gen for uid, gen in self._gens.items() if uid in pods}
        for uid, pod in pods.items():
            if self._gens.get(uid) == pod.gen:
                continue
            try:
                found = await self._server.get(pod_path(pod.namespace, pod.name), _AllocatedPod)
            except KubeError as error:  # it may be gone; the scheduler then removes it soon
                self._repeats.failed("a pod can't be asked about, so if it is resized it waits", error)
                continue
            who = PodRef(namespace=pod.namespace, name=pod.name, uid=uid)
            if content := content_of(who, found.metadata):
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(self._folder / f"{uid}.json", content)
                self._gens[uid] = pod.gen


def content_of(pod: PodRef, meta: Meta) -> bytes:
    """The content of a pod's file; empty if another pod has its name, or it has no allocation of a valid size."""
    text, signature = meta.annotations.get(ALLOCATION, ""), meta.annotations.get(SIGNATURE, "")
    if meta.uid != pod.uid or not text or len(text) > MAX_ANNOTATION_BYTES:
        return b""
    return msgspec.json.encode(NewAllocation(pod=pod, allocation=text, signature=signature))


def suspension_reports(root: Path) -> str:
    """Reports of crishim on pods that were to be suspended; empty if there are none, or none that can be read.

    Those beyond a bound are left out, as if not made yet: a Lease that is too large would be no heartbeat any more.
    """
    try:
        reports = READ_REPORTS.read((root / SUSPENDED_FILE).read_bytes())
    except (OSError, DecodeError):
        return ""
    sizes = accumulate(len(msgspec.json.encode({uid: reports[uid]})) for uid in sorted(reports))
    kept = {uid: reports[uid] for uid, size in zip(sorted(reports), sizes, strict=True) if size <= MOST_REPORTED_BYTES}
    return msgspec.json.encode(kept, order="deterministic").decode() if kept else ""
