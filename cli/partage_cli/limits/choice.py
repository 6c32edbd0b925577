"""Selects the limits that a command names: by pod, container and card. Pure.

An ambiguous name is rejected with all its candidates, never guessed: a limit on the wrong container stops its work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from partage_cli.tables import few
from partage_cli.top.grantees import Grantee, grantees
from partage_isolation.wire.messages import BrokerReport, CardHeld, ContainerReport
from partage_oci.words import SHOWN
from partage_plugins.api.names import CardId
from partage_plugins.api.pods import PodRef
from partage_plugins.errors import Refused

_FEW: Final = 8


class Target(NamedTuple):
    grantee: Grantee
    held: CardHeld


def chosen(told: BrokerReport, pod: str, *, container: str | None, card: str | None) -> tuple[Target, ...]:
    """The selected limits, at least one; raises `Refused`."""
    some = _with_container(grantees(_of_pod(told.containers, pod)), pod, container)
    wanted = None if card is None else _card(told, card)
    found = tuple(Target(each, held) for each in some for held in each.cards if wanted is None or held.card == wanted)
    if not found:
        raise Refused(f"no container of pod {pod} has card {card}; `partage limits {pod}` shows what they have")
    return found


def require_one_container(targets: Sequence[Target], pod: str) -> None:
    """Require one container or one budget, because limits are set for one at a time; its cards may be several."""
    names = [target.grantee.name for target in targets]
    if len(set(names)) > 1:
        raise Refused(f"pod {pod} has limits in several containers: {_names(names)}; say which one by --container")


def _of_pod(containers: Sequence[ContainerReport], pod: str) -> list[ContainerReport]:
    found = [each for each in containers if _is_named(each.pod, pod)]
    if not found:
        claims = _names(f"{each.pod.namespace}/{each.pod.name}" for each in containers if each.is_claim)
        instead = f"; claims go by their own names: {claims}" if claims else ""
        raise Refused(
            f"the broker of this node has no limits of pod {pod}; does it run here, and with part of a card?{instead}"
        )
    if len({each.pod.uid for each in found}) > 1:
        names = _names(f"{each.pod.namespace}/{each.pod.name} ({each.pod.uid})" for each in found)
        raise Refused(f"{pod} could be {names}; say which one as NAMESPACE/NAME or by its uid")
    return found


def _is_named(pod: PodRef, name: str) -> bool:
    """The uid of an engine's container is its id, which engines shorten."""
    return name in {pod.name, f"{pod.namespace}/{pod.name}", pod.uid, pod.uid[:SHOWN]}


def _with_container(some: list[Grantee], pod: str, name: str | None) -> list[Grantee]:
    """The grantee with this container; all of them if `name` is None."""
    found = [each for each in some if name in {None, *each.names}]
    if not found:
        names = _names(name for each in some for name in each.names)
        raise Refused(f"pod {pod} has no limits in a container {name}; it has them in {names}")
    return found


def _card(told: BrokerReport, said: str) -> CardId:
    """A card by its id, a prefix of the id, or its index on the node."""
    known = {held.card for each in told.containers for held in each.cards} | {card.card for card in told.cards}
    by_index = [card.card for card in told.cards if said == str(card.index)]
    found = [CardId(said)] if said in known else by_index or sorted(each for each in known if each.startswith(said))
    if len(found) != 1:
        meant = _names(found) if found else "no card of this node"
        raise Refused(f"card {said} means {meant}; say its id")
    return found[0]


def _names(names: Iterable[str]) -> str:
    return few(dict.fromkeys(names), _FEW)
