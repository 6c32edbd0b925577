"""A container's create, from the request in its configuration to the reply, and the lifetime of its grants afterwards.

The order of steps is: reserve, write a record, put limits in force at the broker, write the configuration. A crash at
any step leaves nothing that the next agent does not find. Steps for one container are serialized; different containers
do not wait for each other.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakValueDictionary

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.peers import Peer
from partage_base.version import VERSION
from partage_oci.config_file import CONFIG, device_nodes, read_document, write_document
from partage_oci.holds import DoesNotFit, Holds
from partage_oci.messages import Create, Delete, Go, Held, Told, Wait
from partage_oci.placement import GEN, Placement
from partage_oci.processes import Processes
from partage_oci.queue import Queue
from partage_oci.records import EngineRecord, EngineRecords
from partage_oci.rewrite import Document, OciConfig, read_config, require_confined, rewritten, shown
from partage_oci.runtime import kill
from partage_oci.words import CARDS, MEMORY, SHARE, SHOWN, Asked, asked_of
from partage_plugins.api import GPU, ContainerAllocation, PodRequest
from partage_plugins.api.containers import Container, Granted
from partage_plugins.api.keys import CONTAINER
from partage_plugins.api.names import ContainerKey
from partage_plugins.api.pods import Pod
from partage_plugins.codecs import encode_container
from partage_plugins.errors import PartageError, PluginError, Refused
from partage_plugins.framework.node import Adjusted
from partage_plugins.rules.enforcement import Enforcement, require_enforced

_LAST_RUN_S: Final = 5.0
"""The wait for leftovers of a container's last run; an engine creates it again only once that has ended."""
_AGAIN_S: Final = 0.1
_RESERVED_S: Final = 30.0
"""How long a reservation for a waiting client is kept."""
_LOOKS_S: Final = 2.0
_SAID_AGAIN_S: Final = 300.0
_log = structlog.get_logger()


class NodePlugins(Protocol):
    """The plugins of this machine; see `partage_plugins.host.PluginHost`."""

    async def adjust(self, container: Container, granted: Granted) -> Adjusted: ...

    async def removed(self, key: ContainerKey) -> None: ...


@dataclass(frozen=True, kw_only=True)
class AgentPolicy:
    """Operator settings for containers with a share."""

    nvidia_runtime: str = ""
    hook: str = ""
    """If empty, the program that sent the request."""
    enforcement: Enforcement = "strict"


class Agent:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        *,
        placement: Placement,
        holds: Holds,
        records: EngineRecords,
        plugins: NodePlugins,
        refresh: Callable[[], str],
        policy: AgentPolicy,
    ) -> None:
        """`refresh` rereads the inventory, and returns why it is unknown, or an empty string."""
        self._placement, self._holds, self._records = placement, holds, records
        self._queue, self._waits = Queue(placement, keep_s=_RESERVED_S, clock=_now_s), itertools.count(1)
        self._plugins, self._refresh, self._policy = plugins, refresh, policy
        self._processes = Processes(self._ended)
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        self._looks = set[asyncio.Task[None]]()
        self._removed = set[str]()
        """Containers that ran at the last look although their engines had removed them."""
        self._repeats = Repeats(every_s=_SAID_AGAIN_S)

    def take_over(self) -> None:
        """Restore the holds of an earlier agent before serving requests; raises `DecodeError` and `OSError`."""
        for record in self._records.load():
            self._holds.find(record)
            if not record.is_created:
                self._processes.find(record)

    async def close(self) -> None:
        """Stop; all state is on disk for the next agent."""
        self._processes.close()
        for look in tuple(self._looks):
            look.cancel()
        await asyncio.gather(*self._looks, return_exceptions=True)

    async def create(self, question: Create, peer: Peer) -> Go:
        """Write the container's grants into its bundle; after a `PartageError` or `OSError` it has none."""
        path = Path(question.bundle) / CONFIG
        document = await asyncio.to_thread(read_document, path)
        config = read_config(document)
        asked = asked_of(config.env, config.annotations or {})
        if asked is None:
            return Go()
        require_confined(config)
        pod = asked.pod(question.id, memory_bytes=config.memory_bytes)
        request = self._request(asked, pod)
        async with self._turn(question.id):
            record = await self._held(question, config, request, peer)
            try:
                self._records.write(record)
                if _annotation(record) != (config.annotations or {}).get(CONTAINER):
                    await self._attach(record, document, config, pod, question, self._hook(peer))
            except BaseException:
                self._holds.creator_ended(question.id, is_created=False)
                await self._settle(question.id)
                raise
        cards = [grant.card for grant in record.grants]
        _log.info("container created with a share", container=question.id[:SHOWN], n=record.n, cards=cards)
        return Go(runtime=self._policy.nvidia_runtime)

    def delete(self, question: Delete, peer: Peer) -> None:
        """Check the container once the deleting process has ended; the request itself is not trusted."""
        if self._holds.of(question.id) is not None:
            self._processes.deletes(question.id, peer)

    def tell(self) -> Told:
        """The containers that hold a share, in order of arrival."""
        now_s = _now_s()
        held = (
            Held(
                id=each.record.id,
                n=each.record.n,
                stage=each.stage,
                kept_s=max(0.0, each.until_s - now_s) if each.stage == "kept" else None,
                grants=each.record.grants,
            )
            for each in self._holds
        )
        return Told(agent=VERSION, containers=tuple(held))

    async def wait(self, question: Wait, waits: Callable[[str], None]) -> None:
        """Wait until room is reserved for a container with these variables; raises a `PartageError`.

        The container must be created soon, within `_RESERVED_S`.
        """
        asked = asked_of(question.env, {})
        if asked is None:
            raise Refused(f"nothing is asked for, so there is nothing to wait for; say {SHARE}, {MEMORY} or {CARDS}")
        request = self._request(asked, asked.pod(f"waiting-{next(self._waits)}", memory_bytes=None))
        self._require_known()
        self._expire()
        await self._queue.wait(request, waits)

    async def look(self) -> None:
        """Check all holds; most ends were noticed before."""
        removed = set[str]()
        for id_ in [each.record.id for each in self._holds]:
            async with self._turn(id_):
                await self._settle(id_)
                hold = self._holds.of(id_)
                if hold is not None and hold.stage == "running" and _is_removed(hold.record):
                    removed.add(id_)
                    await self._end_removed(hold.record)
        self._removed = removed
        self._expire()

    async def _end_removed(self, record: EngineRecord) -> None:
        """Kill a container that its engine removed and did not end, as after a crash: nobody else would."""
        try:
            is_killed = record.id in self._removed and await kill(record)
        except OSError as error:
            self._repeats.failed("what an engine left of a container can't be killed; it is tried again", error)
        else:
            if is_killed:
                _log.warning("container killed that its engine had removed", container=record.id[:SHOWN])

    def _require_known(self) -> None:
        if why := self._refresh():
            raise Refused(f"which cards there are is not known: {why}")

    def _request(self, asked: Asked, pod: Pod) -> PodRequest:
        try:
            request = self._placement.request(pod)
        except PluginError:
            raise
        except PartageError as error:
            raise Refused(asked.refusal(error)) from None
        if not request.asking:
            raise asked.in_vain()
        return request

    async def _held(self, question: Create, config: OciConfig, request: PodRequest, peer: Peer) -> EngineRecord:
        """Reserve room. The same process may ask again if an agent died before it answered."""
        hold = self._holds.of(question.id)
        if hold is not None and hold.stage == "creating" and _is_by(hold.record, peer):
            return hold.record
        await self._make_way(question.id)
        self._require_known()
        self._expire()
        if self._holds.of(question.id) is None:
            self._queue.claim(request)
        made = partial(
            EngineRecord,
            id=question.id,
            pid=peer.pid,
            start=peer.start,
            runtime=self._policy.nvidia_runtime or question.runtime,
            root=question.root or _usual_root(question.runtime),
            folder=config.folder(question.id),
        )
        try:
            record = self._holds.place(request, made, _now_s())
        except DoesNotFit:
            await self._look_again()
            record = self._holds.place(request, made, _now_s())
        self._processes.creates(question.id, peer)
        return record

    async def _look_again(self) -> None:
        """Recheck all holds, so that one that has just ended does not fail a start, which the engine tries only once.

        Containers whose lock is taken are skipped: their holder may be waiting for ours.
        """
        for hold in self._holds:
            turn = self._turn(hold.record.id)
            if not turn.locked():
                async with turn:
                    await self._settle(hold.record.id)
        if self._looks:
            await asyncio.wait(self._looks, timeout=_LOOKS_S)
        self._expire()

    async def _make_way(self, id_: str) -> None:
        """Wait for the container's last run to end, which the broker may not know yet, before it is created again."""
        until = _now_s() + _LAST_RUN_S
        while (hold := self._holds.of(id_)) is not None and hold.stage != "kept":
            await self._settle(id_)
            if _now_s() > until:
                raise Refused(
                    f"processes of the last run of container {id_[:SHOWN]} still have their cards; "
                    "start it again when they have ended"
                )
            if self._holds.of(id_) is hold:
                await asyncio.sleep(_AGAIN_S)

    async def _attach(  # noqa: PLR0913, PLR0917  all that is known of it
        self, record: EngineRecord, document: Document, config: OciConfig, pod: Pod, question: Create, hook: str
    ) -> None:
        """Put the limits in force through plugins, and write their answer into the bundle."""
        part = self._placement.cards
        granted = Granted(gen=GEN, grants={GPU.name: record.grants}, parts={} if part is None else {GPU.name: part})
        runtime = self._policy.nvidia_runtime or question.runtime
        adjusted = await self._plugins.adjust(shown(config, record.key, pod, runtime), granted)
        require_enforced(adjusted.unenforced, self._policy.enforcement)
        nodes = await asyncio.to_thread(device_nodes, adjusted.adjustment.devices)
        annotations = {CONTAINER: _annotation(record)}
        made = rewritten(document, adjusted.adjustment, nodes, hook=hook, key=record.key, annotations=annotations)
        await asyncio.to_thread(write_document, Path(question.bundle) / CONFIG, made)

    def _hook(self, peer: Peer) -> str:
        return self._policy.hook or str(Path(f"/proc/{peer.pid}/exe").readlink())

    async def _settle(self, id_: str) -> None:
        """Free the hold, or keep it for a restart, if nothing uses it; the caller has the container's lock."""
        hold = self._holds.of(id_)
        if hold is None or hold.stage == "kept" or (hold.stage == "creating" and self._processes.is_created(id_)):
            return
        try:
            if hold.stage == "creating":
                is_created = await asyncio.to_thread(_is_there, hold.record)
                self._records.write(self._holds.creator_ended(id_, is_created=is_created))
            await self._plugins.removed(hold.record.key)
        except Refused:
            return  # usually still in use; or the broker is away, which the next create reports
        except (PluginError, OSError) as error:
            self._repeats.failed("whether a container still has its share is not known; it is asked again", error)
            return
        if self._holds.over(id_, _now_s(), is_removed=_is_removed(hold.record)):
            self._forget(id_)
            self._queue.look()

    def _expire(self) -> None:
        for id_ in self._holds.expire(_now_s(), _is_removed):
            self._forget(id_)
        self._queue.look()

    def _forget(self, id_: str) -> None:
        self._records.remove(id_)
        self._processes.leave(id_)
        _log.info("container's share released", container=id_[:SHOWN])

    def _ended(self, id_: str) -> None:
        """Check the container: the process that created or deleted it has ended."""
        look = asyncio.get_running_loop().create_task(self._settle_in_turn(id_), name=f"look at {id_[:SHOWN]}")
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)

    async def _settle_in_turn(self, id_: str) -> None:
        async with self._turn(id_):
            await self._settle(id_)

    def _turn(self, id_: str) -> asyncio.Lock:
        """The container's lock; it exists as long as it is in use."""
        return self._turns.setdefault(id_, asyncio.Lock())


def _annotation(record: EngineRecord) -> str:
    return encode_container(ContainerAllocation(key=record.key, gen=GEN, grants={GPU.name: record.grants}))


def _is_by(record: EngineRecord, peer: Peer) -> bool:
    return (record.pid, record.start) == (peer.pid, peer.start)


def _is_there(record: EngineRecord) -> bool:
    """Whether the runtime has the container: it keeps a folder for it from create until delete."""
    return Path(record.root, record.id).exists()


def _usual_root(runtime: str) -> str:
    """The default state folder of runc and crun, which Podman does not override."""
    return f"/run/{Path(runtime).name}"


def _is_removed(record: EngineRecord) -> bool:
    """Whether the engine's folder of the container is gone, and not with the folders of all others."""
    folder = Path(record.folder)
    return bool(record.folder) and not folder.exists() and folder.parent.exists()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
