"""A node's installation state: the labels that people set, and the annotation of its installer. Pure.

    partage.dev/install=yes    shares its cards: the installer brings it into force and keeps it at its own version
    partage.dev/install=off    everything that was installed is removed again
    partage.dev/canary=yes     is the first at every version

The installer's annotation `partage.dev/installed` has the progress. It is valid for one version and for the label at
that time; with another version or label the node starts over.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final, Literal

import msgspec

from partage_base.kube.objects import Node
from partage_plugins.api.keys import PREFIX
from partage_plugins.text import one_line

INSTALL: Final = PREFIX + "install"
CANARY: Final = PREFIX + "canary"
INSTALLED: Final = PREFIX + "installed"
YES: Final = "yes"
LONGEST_WHY: Final = 300

State = Literal["waiting", "working", "in-force", "failed", "off"]


class DesiredState(Enum):
    """The values of the label `partage.dev/install`."""

    ON = "yes"
    OFF = "off"


class InstallReport(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON content of the annotation `partage.dev/installed`."""

    v: Literal[1] = 1
    version: str
    """The installer's own, which is the node's target."""
    label: DesiredState
    """The label at that time."""
    state: State
    why: str = ""

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the roll-out."""

    name: str
    wish: DesiredState
    is_canary: bool = False
    told: InstallReport | None = None

    def state(self, version: str) -> State | None:
        """Its state at that version and its present label; None if it has reported none."""
        told = self.told
        return told.state if told is not None and (told.version, told.label) == (version, self.wish) else None


def telling(version: str, wish: DesiredState, state: State, why: str = "") -> InstallReport:
    """A report with the reason as one printable line."""
    return InstallReport(version=version, label=wish, state=state, why=one_line(why, LONGEST_WHY).strip())


def member_of(node: Node) -> Member | None:
    """None for a node without a valid label."""
    meta = node.metadata
    try:
        wish = DesiredState(meta.labels.get(INSTALL, ""))
    except ValueError:
        return None
    told = _told(meta.annotations.get(INSTALLED))
    return Member(name=meta.name, wish=wish, is_canary=meta.labels.get(CANARY) == YES, told=told)


def members_of(nodes: Iterable[Node]) -> tuple[Member, ...]:
    """The labelled nodes, by name."""
    found = (member_of(node) for node in nodes)
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.name))


def _told(text: str | None) -> InstallReport | None:
    """An invalid annotation was not written by our installer, and is ignored."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=InstallReport)
    except (msgspec.DecodeError, RecursionError):
        return None
