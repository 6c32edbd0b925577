"""The node's time-slice policy, and the files that its broker needs to start again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, status_of
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_isolation.wire.messages import BrokerLoss, BrokerReport, CardReport
from partage_plugins.errors import Refused

PAGE: Final = "libpartage-page.so"
"""The library by which the broker publishes time slices; it lies beside the library folders."""
_FREE: Final = "free-run"
_COMPARED: Final = "gemini"
_WITHOUT: Final[dict[BrokerLoss, str]] = {
    "free-run": "while the broker is away launches go on unmetered",
    "closed": "while the broker is away launches wait, and then fail",
}


def turns(node: LocalNode) -> Iterator[Finding]:
    """The policy of each card, the behaviour without a broker, and whether the broker can start again."""
    about = About("time")
    try:
        told = BrokerClient(node.root).tell()
    except (ControlError, Refused) as error:
        yield about.unknown(f"not known how it is divided: {error}")
        return
    if told.policy is None:
        yield about.warning(
            "the broker that runs divides none: it is of an older version",
            do="restart partage-broker after the upgrade",
        )
        return
    yield _divided(about, told)
    if told.library:
        yield from _helper(Path(told.library).parent / PAGE)


def _divided(about: About, told: BrokerReport) -> Finding:
    used = {told.policy, *(card.policy or told.policy for card in told.cards)}
    without = _WITHOUT[told.compute_on_broker_loss] if used != {_FREE} else "parts of a card's time are refused"
    found = f"{_policies(told)}; {without}"
    if _COMPARED in used:
        return about.warning(
            f"{found}; {_COMPARED} is there for comparison, and has long turns",
            do="set `policy` of partage-broker to virtual-time",
        )
    return about.ok(found)


def _policies(told: BrokerReport) -> str:
    others = ", ".join(
        f"{card.policy} on {_name(card)}" for card in told.cards if card.policy not in (None, told.policy)
    )
    return f"by {told.policy}, but {others}" if others else f"by {told.policy}"


def _name(card: CardReport) -> str:
    return card.card if card.index is None else f"card {card.index}"


def _helper(path: Path) -> Iterator[Finding]:
    status = status_of(path)
    if isinstance(status, Unseen):
        about = About("time", (str(path),))
        if status.is_missing:
            yield about.wrong(
                f"{path} is not there: the broker that runs goes on, and the next does not start",
                do="`partage-broker --install-library` as root on the node",
            )
        else:
            yield about.unknown(str(status), do="ask again as root")
