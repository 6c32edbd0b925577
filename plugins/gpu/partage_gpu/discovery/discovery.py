"""Finds the node's cards and their health for the plugin's hooks: it collects the data, and pure modules evaluate it.

    Driver ─look, XIDs▶ known ▸ health        ┐
    pauses, kubelet's folder ─▶ native ▸ pool ├▶ parts ─▶ the inventory's part
    devices in use ─▶ native                  ┘

The last inventory is read once at the start, so that a card which was degraded is not ok just because of a restart.
Used from one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

import structlog

from partage_gpu.discovery.causes import GONE, Away, away_by
from partage_gpu.discovery.device_plugin import DevicePluginAllocations, Hands, Names, hands, natives_after
from partage_gpu.discovery.health import History, let_go, recalled, stepped
from partage_gpu.discovery.known import KnownCards, gpu_of, recalled_cards, seen
from partage_gpu.discovery.node_files import KubeletFolder, last_part
from partage_gpu.discovery.parts import Findings, gauges, part_of
from partage_gpu.discovery.pool import beyond_memory, pools
from partage_gpu.discovery.settings import DiscoverySettings
from partage_gpu.nvml.driver import Driver
from partage_gpu.nvml.facts import CardFacts, Look, Sample, Trouble, Xid
from partage_gpu.nvml.pause import Pauses
from partage_plugins.api.gpu import GpuPart
from partage_plugins.api.names import CardId
from partage_plugins.api.node import DeviceUse, Gauge, NodeContext
from partage_plugins.errors import Refused

_NEW: Final = History()
_log = structlog.get_logger()


class DriverSide(Protocol):
    """The source of facts from the driver."""

    def look(self) -> Look: ...

    def xids(self) -> tuple[Xid, ...]:
        """Errors since the last call."""
        ...

    def samples(self) -> tuple[Sample, ...]: ...

    def let_go(self) -> None:
        """Closes everything, until the next `look`."""
        ...

    def close(self) -> None: ...


class Discovery:
    def __init__(
        self,
        context: NodeContext,
        settings: DiscoverySettings,
        *,
        driver: DriverSide | None = None,
        clock: Callable[[], float] = time.monotonic,  # stops during suspend: cards were not watched then
    ) -> None:
        root = Path(context.root)
        self._node, self._settings, self._clock = context.node, settings, clock
        self._driver = driver or Driver(root / str(context.driver_root).lstrip("/"), wake=context.wake)
        self._pauses, self._kubelet = Pauses(root), KubeletFolder(root)
        last = last_part(root)
        self._known, self._histories, self._natives = _recalled(last, clock(), settings)
        self._hands = Hands(reserved=_reserved(last))
        self._last_look: Look | None = None
        self._part: GpuPart | None = None
        self._paused: str | None = None
        self._said: dict[str, str] = {}

    def discover(self, in_use: Sequence[DeviceUse] | None) -> GpuPart | None:
        """All cards that are or were here; None if there never were any; raises `Refused` while that is unknown."""
        now_s, paused = self._clock(), self._pauses.reason()
        sayings: dict[str, str] = {}
        if paused is not None:
            self._rest(now_s)
        elif not self._look(now_s, sayings):
            if not self._known.cards:
                raise Refused("the NVIDIA driver was opened just now and has not said yet which cards it has")
            paused = self._paused  # there is no new result yet
        self._paused = paused
        self._part = part_of(self._known, self._findings(now_s, in_use, sayings))
        self._tell(sayings)
        return self._part

    def samples(self) -> list[Gauge]:
        """Measurements; while the driver is released, only those from the last inventory."""
        return gauges(self._node, self._driver.samples() if self._paused is None else (), self._part)

    def close(self) -> None:
        """Releases the driver finally."""
        self._driver.close()

    def _rest(self, now_s: float) -> None:
        self._driver.let_go()
        happened, rules = self._happened(), self._settings.rules
        self._histories = {
            gpu: let_go(history, now_s, xids=happened.get(gpu, ()), rules=rules)
            for gpu, history in self._histories.items()
        }

    def _look(self, now_s: float, sayings: dict[str, str]) -> bool:
        """Whether there is a result: a driver that was just opened may take a while."""
        look = self._driver.look()
        if isinstance(look, Trouble):
            sayings[away_by(look).because] = look.sentence
            if look.kind == "slow" and self._last_look is not None:
                look = self._last_look  # stays valid until the answer comes, so that nothing flaps
            elif look.kind in ("starts", "slow"):
                return False
        if not isinstance(look, Trouble):
            self._known = seen(self._known, look, reserve_bytes=self._settings.reserve_bytes)
        self._last_look = look
        happened, rules = self._happened(), self._settings.rules
        self._histories = {
            gpu: stepped(
                self._histories.get(gpu, _NEW), now_s, shown=_shown(gpu, look), xids=happened.get(gpu, ()), rules=rules
            )
            for gpu in self._known.gpus()
        }
        return True

    def _happened(self) -> dict[CardId, list[int]]:
        """XIDs by GPU; those of a MIG instance count for its GPU."""
        happened: dict[CardId, list[int]] = {}
        for xid in self._driver.xids():
            card = self._known.cards.get(CardId(xid.uuid))
            happened.setdefault(gpu_of(card) if card else CardId(xid.uuid), []).append(xid.number)
        return happened

    def _findings(self, now_s: float, in_use: Sequence[DeviceUse] | None, sayings: dict[str, str]) -> Findings:
        names = Names(self._known)
        self._natives = natives_after(self._natives, self._kubelet.traces(), names, now_s)
        if in_use is not None:  # if kubelet can't be queried, it has not taken anything back
            self._hands = hands(in_use, names)
        has_natives, reserved = self._natives.are_there(now_s), self._hands.reserved.keys()
        chosen = pools(self._settings, self._known, has_natives=has_natives, reserved=reserved)
        beyond = beyond_memory(self._settings, self._known)
        if self._known.cards:
            sayings |= {sentence: sentence for sentence in (*chosen.unmet, *beyond.unmet)}
        return Findings(
            histories=self._histories,
            pools=chosen,
            beyond=beyond.of_card,
            blind=frozenset() if self._settings.share_blind else self._known.blind,
            hands=self._hands,
            paused=self._paused,
        )

    def _tell(self, sayings: dict[str, str]) -> None:
        """Logs what was not logged by the previous call, since this runs every few seconds."""
        for key in sayings.keys() - self._said.keys():
            _log.warning("problem with this node's cards", what=sayings[key])
        self._said = sayings


def _recalled(
    part: GpuPart | None, now_s: float, settings: DiscoverySettings
) -> tuple[KnownCards, dict[CardId, History], DevicePluginAllocations]:
    """The state that the last inventory preserves."""
    if part is None:
        return KnownCards(), {}, DevicePluginAllocations()
    histories = {gpu_of(card): recalled(card.condition, now_s, settings.rules) for card in reversed(part.cards)}
    had_natives = part.reservable or any(card.pool == "kubelet" for card in part.cards)
    return recalled_cards(part), histories, DevicePluginAllocations(now_s if had_natives else None)


def _reserved(part: GpuPart | None) -> dict[CardId, str]:
    return {card.id: card.reservation for card in part.cards if card.reservation} if part else {}


def _shown(gpu: CardId, look: Look) -> CardFacts | Away:
    """The report's content for one GPU."""
    if isinstance(look, Trouble):
        return away_by(look)
    for shown in look.cards:
        if shown.uuid == gpu:
            return shown
    for silent in look.silent:
        if silent.uuid in (gpu, None):  # one without an id may be this one
            return Away(silent.fault)
    return GONE
