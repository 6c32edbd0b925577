"""One node's installer: reads what is asked for, waits for its turn, works, and reports the result.

Each round starts from the current state of Node and host, so an installer that died at any point continues there:

    keys, settings and tree are on the host     needs no turn: they are unused yet, or were there before
    `waiting` is reported, Lease is taken       it may be given back or expire: nothing was changed
    `working` is reported, then commands run    the next installer of this node continues, once it has the Lease
    the result is reported                      the Lease is given back after that, never before

A node that is switched off needs no Lease.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, NamedTuple

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.event_wait import set_within
from partage_base.kube import Backoff, KubeError
from partage_cli.installation.tree import place
from partage_cli.rollout.fleet import Fleet
from partage_cli.rollout.installer import deliveries
from partage_cli.rollout.installer.deliveries import NoKeys
from partage_cli.rollout.installer.host import HostProgram
from partage_cli.rollout.installer.reported_node import ReportedNode
from partage_cli.rollout.installer.settings import InstallerSettings
from partage_cli.rollout.node_state import DesiredState, InstallReport, Member, State, telling
from partage_cli.rollout.order import Command, Hold, HostState, wanted
from partage_plugins.errors import PartageError

_FIRST_S: Final = 1.0
_MOST_S: Final = 30.0
_ASK_PER_NODE_S: Final = 0.05
"""Limits the request rate of all nodes together, however many there are."""
_SETTLES_WITHIN_S: Final = 60.0
_SETTLE_LOOKS_S: Final = 1.0
_PUT_BACK_AGAIN_S: Final = 600.0
"""Delay before the same files are restored again: somebody else may write them, and daemons restart each time."""
_RENEWALS: Final = 4
"""Intervals in a Lease's duration: failed renewals before others consider the node silent."""
_log = structlog.get_logger()


class Supply(NamedTuple):
    """Whether the host has everything it needs before its turn."""

    hinders: Literal["waiting", "failed"] | None = None
    """The state to report instead of continuing."""
    why: str = ""


class Installer:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        settings: InstallerSettings,
        *,
        version: str,
        tree: Path,
        node: ReportedNode,
        fleet: Fleet,
        host: HostProgram,
        woken: asyncio.Event,
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_begin`: whether long work may still be started."""
        self._settings, self._version, self._tree = settings, version, tree
        self._node, self._fleet, self._host = node, fleet, host
        self._woken, self._may_begin = woken, may_begin
        self._backoff = Backoff(first_s=_FIRST_S, most_s=_MOST_S)
        self._repeats = Repeats(every_s=60)
        self._has_tree = False
        self._has_supply = True
        self._is_fresh = True
        self._lapsed_at: float | None = None
        self._last_put_back = ""
        self._put_back: tuple[str, ...] = ()
        self._put_back_at = 0.0
        self.at_rest = asyncio.Event()
        """Set unless a command runs on the host."""
        self.at_rest.set()

    async def run(self) -> None:
        """Works forever; errors are retried with increasing delays."""
        while True:
            self._woken.clear()
            try:
                hold = await self.round()
            except (KubeError, OSError) as error:
                self._repeats.failed("the installer could not go on; it will be tried again", error)
                await asyncio.sleep(self._backoff.after(error if isinstance(error, KubeError) else None))
                continue
            self._backoff.reset()
            await self._until_due(hold)

    async def round(self) -> Hold | None:
        """One round; returns what the node waits for, if anything. Raises `KubeError` or `OSError`."""
        node = self._node.member
        if node is None:
            return None
        supply = await asyncio.to_thread(self._supplied, node)
        host = await self._host.state()
        if node.wish is DesiredState.ON and node.state(self._version) == "in-force":
            host = await self._whole(host)
            supply = supply._replace(why="; ".join(filter(None, (supply.why, self._last_put_back))))
        if self._is_lapsing(node, host):
            await self._node.tell(self._said(node.wish, "in-force", supply.why))
            return None
        next_ = wanted(node, self._version, host)
        if isinstance(next_, InstallReport):
            is_kept = next_.state == "in-force"
            await self._settle(node, self._said(node.wish, "in-force", supply.why) if is_kept else next_)
            return None
        if supply.hinders is None:
            supply = await asyncio.to_thread(self._with_tree, node.wish, supply)
        self._has_supply = supply.hinders != "waiting"
        if supply.hinders is not None:
            await self._node.tell(self._said(node.wish, supply.hinders, supply.why))
            return None
        return await self._try(node, next_)

    async def _settle(self, node: Member, told: InstallReport) -> None:
        """Reports a final state, and removes deliveries from a node that is off."""
        if self._is_fresh:
            await self._fleet.lease.give_back(node.name)  # one that died here may have held it
            self._is_fresh = False
        if told.state == "off":
            await asyncio.to_thread(deliveries.take_back, self._host.root)
        await self._node.tell(told)

    async def _whole(self, host: HostState) -> HostState:
        """Restores altered files of the host and returns its state afterwards. Kubelet is not touched."""
        now_s = asyncio.get_running_loop().time()
        is_again = host.altered == self._put_back and now_s - self._put_back_at < _PUT_BACK_AGAIN_S
        is_ours = host.version in ("", self._version)
        if not host.altered or is_again or not is_ours or not self._may_begin():
            return host
        self._put_back, self._put_back_at = host.altered, now_s
        try:
            with self._at_work():
                await asyncio.to_thread(place, self._host.root, self._tree)
                why = await self._host.do("install")
        except PartageError as error:
            why = str(error)
        names = ", ".join(host.altered)
        self._wrote(f"could not put back {names}: {why}" if why else f"put back {names}")
        return await self._host.state()

    def _wrote(self, line: str) -> None:
        """Records a change of a host in force: in the log, and on the Node until the next such change."""
        _log.info("host files differed from the installation", done=line)
        self._last_put_back = f"{datetime.now(UTC):%Y-%m-%d %H:%M}Z: {line}"

    def _supplied(self, node: Member) -> Supply:
        """Copies the cluster's keys and settings to the host. Blocks."""
        if node.wish is DesiredState.OFF:
            return Supply()
        wrote = self._wrote if node.state(self._version) == "in-force" else lambda _line: None
        try:
            deliveries.deliver_keys(self._settings.keys, self._host.root, wrote)
            note = deliveries.deliver_settings(self._settings.node_settings, self._host.root, wrote)
        except NoKeys as error:
            return Supply("waiting", str(error))
        except (PartageError, OSError) as error:
            return Supply("failed", str(error))
        return Supply(why=note or "")

    def _with_tree(self, wish: DesiredState, supply: Supply) -> Supply:
        """Also copies this version's tree to the host, if it needs one. Blocks for seconds."""
        if self._has_tree or (wish is DesiredState.OFF and self._host.has_program):
            return supply
        try:
            place(self._host.root, self._tree)
        except (PartageError, OSError) as error:
            return Supply("failed", str(error))
        self._has_tree = True
        return supply

    async def _try(self, node: Member, commands: tuple[Command, ...]) -> Hold | None:
        """Works if it is the node's turn."""
        self._is_fresh = False
        if node.state(self._version) is None:
            await self._node.tell(self._said(node.wish, "waiting"))
        if not self._may_begin():
            return None
        if node.wish is DesiredState.OFF:
            await self._work(node.wish, commands)
            return None
        hold = await self._fleet.take_turn(node.name, self._version)
        if hold is not None:
            if node.state(self._version) != "working":
                await self._node.tell(self._said(node.wish, "waiting", hold.why))
            return hold
        async with self._renewed():
            await self._work(node.wish, commands)
        await self._fleet.lease.give_back(node.name)
        return None

    async def _work(self, wish: DesiredState, commands: tuple[Command, ...]) -> None:
        """Runs the commands to the end, and reports the result."""
        await self._node.tell(self._said(wish, "working"))
        with self._at_work():
            why = await self._why_not_done(wish, commands)
            done: State = "in-force" if wish is DesiredState.ON else "off"
            await self._tell_surely(self._said(wish, "failed" if why else done, why or ""))

    async def _why_not_done(self, wish: DesiredState, commands: tuple[Command, ...]) -> str | None:
        """Runs the commands; None if the host then has the wanted state."""
        state = HostState()
        try:
            for command in commands:
                _log.info("running a command on the host", command=command)
                why = await self._host.do(command)
                if why is not None:
                    return why
                state = await self._host.state()
                if state.is_as_asked(wish, self._version):
                    break
            else:
                state = await self._settled(wish, state)
            if not state.is_as_asked(wish, self._version):
                return f"every command was done, and the host is not as it should be: {state.why}"
            if wish is DesiredState.OFF:
                await asyncio.to_thread(deliveries.take_back, self._host.root)
                self._has_tree = False
        except OSError as error:
            return f"the host can't be worked on: {error}"
        return None

    async def _settled(self, wish: DesiredState, state: HostState) -> HostState:
        """Waits a while for the wanted state: kubelet's next call to crishim may come only after some seconds."""
        until = asyncio.get_running_loop().time() + min(self._settings.lapse_s, _SETTLES_WITHIN_S)
        while not state.is_as_asked(wish, self._version) and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(_SETTLE_LOOKS_S)
            state = await self._host.state()
        return state

    @contextmanager
    def _at_work(self) -> Generator[None]:
        self.at_rest.clear()
        try:
            yield
        finally:
            self.at_rest.set()

    @asynccontextmanager
    async def _renewed(self) -> AsyncGenerator[None]:
        """Keeps the Lease renewed in the block."""
        renewing = asyncio.create_task(self._keep_renewing())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait((renewing,))  # awaiting the task itself could not tell our own cancellation from its end

    async def _keep_renewing(self) -> None:
        """Work continues without the Lease too: others stop at a node that is working and does not hold it."""
        while True:
            await asyncio.sleep(self._settings.lease_s / _RENEWALS)
            try:
                if not await self._fleet.lease.renew(self._node.name):
                    self._repeats.say("another node has the Lease; this one goes on with what it has begun")
            except KubeError as error:
                self._repeats.failed("the Lease is not renewed; it will be tried again", error)

    async def _tell_surely(self, told: InstallReport) -> None:
        _log.info("the work is done" if told.state != "failed" else "the work failed", state=told.state, why=told.why)
        while True:
            try:
                await self._node.tell(told)
            except KubeError as error:
                self._repeats.failed("what came of the work is not told; it will be tried again", error)
                await asyncio.sleep(self._backoff.after(error))
            else:
                return

    def _is_lapsing(self, node: Member, host: HostState) -> bool:
        """Whether the node was in force and is not at the moment, for instance while it starts."""
        if node.state(self._version) != "in-force" or host.is_as_asked(node.wish, self._version):
            self._lapsed_at = None
            return False
        now = asyncio.get_running_loop().time()
        if self._lapsed_at is None:
            self._lapsed_at = now
        return now - self._lapsed_at < self._settings.lapse_s

    def _said(self, wish: DesiredState, state: State, why: str = "") -> InstallReport:
        return telling(self._version, wish, state, why)

    async def _until_due(self, hold: Hold | None) -> None:
        """Waits until the Node or the object that it waits for has changed, or the next look is due."""
        within_s = self._settings.look_every_s if self._has_supply else self._settings.ask_every_s
        until = asyncio.get_running_loop().time() + within_s
        while (left_s := until - asyncio.get_running_loop().time()) > 0:
            pause_s = left_s if hold is None else min(left_s, self._ask_every_s())
            if await set_within(self._woken, pause_s):
                return
            try:
                if hold is not None and await self._fleet.has_changed(hold):
                    return
            except KubeError as error:
                self._repeats.failed("what the node waits for can't be read; it will be tried again", error)

    def _ask_every_s(self) -> float:
        pause_s = max(self._settings.ask_every_s, _ASK_PER_NODE_S * self._fleet.size)
        return pause_s * (0.75 + 0.5 * random.random())  # noqa: S311  (so that not all ask at once)
