"""All pods of this machine: found when the manager starts, looked for now and then, each with the task of its life."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from partage_base.cri.errors import CriError
from partage_cli.machine.manager import ports
from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.engine import Engine
from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.manager.listing import FoundPod, Listed, Listing
from partage_cli.machine.manager.managed import ManagedPod, Means
from partage_cli.machine.manager.news import News
from partage_cli.machine.places import LOGS
from partage_cli.machine.pods.pod import Pod
from partage_cli.machine.pods.record import Record
from partage_cli.machine.runtime.logs import Reopener, rotate
from partage_cli.machine.runtime.messages import State
from partage_plugins.errors import PluginBroken
from partage_plugins.vocabulary import PodUid

_AFTER_DEFECT_S: Final = 5.0
_LEAST_OF_UID: Final = 6
_UNNAMED: Final = re.compile(r"[^a-z0-9]+")
_log = structlog.get_logger()


class Pods:
    def __init__(self, engine: Engine, admission: Admission, news: News) -> None:
        self.listing = Listing(engine)
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._means = Means(engine=engine, listing=self.listing, admission=admission, news=news, gone=self._gone)
        self._by_uid: dict[str, ManagedPod] = {}
        self._names: dict[str, str] = {}
        """Uids, by name; also of those that are not there yet."""
        self._reserved: dict[str, Pod] = {}
        """Those, by uid."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._told: set[str] = set()

    @property
    def all(self) -> Sequence[ManagedPod]:
        return tuple(self._by_uid.values())

    def named(self, name: str) -> ManagedPod:
        """By its name, or the beginning of its uid. Raises `Objection`."""
        uid = self._names.get(name, "")
        if uid in self._by_uid:
            return self._by_uid[uid]
        found = [pod for key, pod in self._by_uid.items() if len(name) >= _LEAST_OF_UID and key.startswith(name)]
        if len(found) != 1:
            many = f"{len(found)} pods have a uid that begins with" if found else "there is no pod"
            raise Objection("unknown-name", f"{many} {name}; `partage ps -a` shows all")
        return found[0]

    def reserve(self, pod: Pod) -> tuple[Pod, PodUid]:
        """Its name and ports are its own from now on; a name is made up where it has none. Raises `Objection`."""
        uid = PodUid(str(uuid.uuid4()))
        name = pod.metadata.name or f"{_stem(pod)}-{uid[:_LEAST_OF_UID]}"
        if name in self._names:
            raise Objection(
                "name-taken", f"there is a pod {name} already; remove it (`partage rm {name}`), or take another name"
            )
        pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=name))
        self.require_ports(pod)
        self._names[name] = uid
        self._reserved[uid] = pod
        return pod, uid

    def require_ports(self, pod: Pod) -> None:
        """Raises `Objection` where a port of the machine is another pod's; one that has ended has none."""
        kept = [each.record.pod for each in self._by_uid.values() if not each.is_at_rest]
        others = {each.metadata.name: each for each in (*kept, *self._reserved.values())}
        why = ports.why_taken(pod, others)
        if why:
            raise Objection("refused", f"{pod.metadata.name}: {why}")

    def give_up(self, uid: PodUid) -> None:
        """What was reserved is free again, where no pod came of it."""
        self._reserved.pop(uid, None)
        if uid not in self._by_uid:
            self._names = {name: owner for name, owner in self._names.items() if owner != uid}

    def add(self, uid: PodUid, record: Record) -> ManagedPod:
        pod = self._by_uid[uid] = ManagedPod(self._means, uid, record)
        self._names[pod.name] = uid
        self._tasks[uid] = asyncio.create_task(self._live(pod), name=f"pod {pod.name}")
        return pod

    async def look(self) -> None:
        """Takes up what the runtime has and nobody works on; others look again where they are not as they were."""
        before = {uid: (pod.sandbox_id, pod.is_ready, _states(pod)) for uid, pod in self._by_uid.items()}
        listed = await self.listing.now()
        self._tell_faults(listed)
        for uid, found in sorted(listed.pods.items(), key=lambda each: each[1].record.created_ns):
            if uid not in self._by_uid and uid not in self._names.values():
                self._adopt(uid, found)
        for uid, was in before.items():
            pod, found_now = self._by_uid.get(uid), listed.pods.get(uid)
            if pod is not None and was[0] and was != _as_listed(found_now):
                pod.doubt()

    async def known(self) -> None:
        """Returns once each was looked at."""
        for pod in self.all:
            await pod.until(lambda pod=pod: pod.is_gone or pod.is_known)  # type: ignore[misc]

    def doubt(self) -> None:
        """What is known may be old: the runtime was away."""
        for pod in self._by_uid.values():
            pod.doubt()

    def end(self, error: BaseException) -> None:
        """The manager must not go on."""
        if not self._broken.done():
            self._broken.set_exception(error)

    async def until_broken(self) -> None:
        """Raises what the manager must not go on with."""
        await self._broken

    async def rotate_logs(self, runtime: Reopener, root: Path) -> None:
        """Those that have grown too large go on in new files."""
        for pod in self.all:
            for name, piece in pod.pieces.running.items():
                log = root / LOGS / pod.uid / name / f"{piece.attempt}.log"
                try:
                    await rotate(runtime, piece.id, log)
                except (OSError, CriError) as error:
                    _log.warning(
                        "a log that is too large can not go on in a new file",
                        pod=pod.name,
                        container=name,
                        why=str(error),
                    )

    async def close(self) -> None:
        """What runs goes on without this manager."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self._broken.cancel() and not self._broken.cancelled():
            self._broken.exception()  # told by now

    def _adopt(self, uid: str, found: FoundPod) -> None:
        name = found.record.pod.metadata.name
        if name in self._names:
            _log.error("two pods have one name; the second is reached by its uid", pod=name, uid=uid)
        pod = self._by_uid[uid] = ManagedPod(self._means, PodUid(uid), found.record)
        self._names.setdefault(name, uid)
        pod.adopt(found)
        self._tasks[uid] = asyncio.create_task(self._live(pod), name=f"pod {name}")

    def _gone(self, pod: ManagedPod) -> None:
        self._by_uid.pop(pod.uid, None)
        if self._names.get(pod.name) == pod.uid:
            del self._names[pod.name]

    async def _live(self, pod: ManagedPod) -> None:
        """A defect costs a pod some seconds, and not all pods their manager."""
        try:
            while not pod.is_gone:
                try:
                    await pod.live()
                except PluginBroken:
                    raise
                except Exception:  # noqa: BLE001  whatever it is
                    _log.exception(
                        "a defect of the manager, please report it; it looks at the pod once more", pod=pod.name
                    )
                    await asyncio.sleep(_AFTER_DEFECT_S)
                    pod.doubt()
        except PluginBroken as error:
            self.end(error)
        finally:
            self._tasks.pop(pod.uid, None)

    def _tell_faults(self, listed: Listed) -> None:
        for fault in set(listed.faults) - self._told:
            _log.error("a sandbox is left alone, since what it says of its pod can't be read", why=fault)
        self._told = set(listed.faults)


def record_of(pod: Pod, **policy: object) -> Record:
    return Record(pod=pod, created_ns=time.time_ns(), **policy)  # type: ignore[arg-type]


def _stem(pod: Pod) -> str:
    """Of a name that is made up: the image's last word."""
    image = pod.spec.containers[0].image.split("@", maxsplit=1)[0].rpartition("/")[2].partition(":")[0]
    return _UNNAMED.sub("-", image.lower()).strip("-")[:40].strip("-") or "pod"


def _states(pod: ManagedPod) -> dict[str, tuple[str, State]]:
    return {name: (piece.id, piece.now.state) for name, piece in pod.pieces.all.items()}


def _as_listed(found: FoundPod | None) -> tuple[str, bool, dict[str, tuple[str, State]]] | None:
    if found is None:
        return None
    states: dict[str, tuple[str, State]] = {name: (each.id, each.state) for name, each in found.containers.items()}
    return found.sandbox.id, found.sandbox.ready, states
