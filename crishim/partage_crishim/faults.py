"""What can be wrong with a crishim that serves, each as a sentence for whoever looks after the node.

Looks at no more than is quick: nothing here waits for a peer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from partage_base.condition import Fault, fault
from partage_base.daemon.health import Health
from partage_base.daemon.web import METRICS
from partage_base.keyring import Keyring
from partage_crishim.plugins import MeasuredHost
from partage_crishim.records import Records
from partage_crishim.reservations import Reservations
from partage_crishim.rules.errors import NodeNotReady

CLOSED: Final = (
    "partage: crishim on this node cannot read its settings, so it starts no container with an allocation; "
    "`partage doctor` on the node shows the mistake to its administrator, and kubelet tries again"
)
"""What users are told while its settings are wrong."""


def of_settings(mistakes: Sequence[str]) -> Iterator[Fault]:
    """It goes by other settings than it is told."""
    if mistakes:
        more = f" (and {len(mistakes) - 1} more mistakes)" if len(mistakes) > 1 else ""
        yield fault(
            "settings", f"its settings cannot be read: {mistakes[0]}{more}; `partage-crishim --check` shows all"
        )


def of_keys(keyring: Keyring) -> Iterator[Fault]:
    """Nothing verifies. A bad key beside a good one keeps nobody from starting, and the log has it."""
    loaded = keyring.current()
    if not loaded.keys:
        yield fault("keys", f"no key verifies allocations: {'; '.join(map(str, loaded.faults))}")


def of_plugins(host: MeasuredHost) -> Iterator[Fault]:
    """Some kinds cannot be given out."""
    for why in host.faults:
        yield fault("plugins", f"a node plugin does not run: {why}")


def of_state(reservations: Reservations, records: Records) -> Iterator[Fault]:
    """What it must remember cannot be read."""
    try:
        with reservations.locked_at_once():
            pass  # it was read
        records.adjusted()
        records.pods()
    except (OSError, NodeNotReady, ValueError) as error:
        yield of_unwritten(error)


def of_unwritten(error: Exception) -> Fault:
    """What it must remember cannot be read or written."""
    return fault("state", f"its folder below /run/partage cannot be used: {error}; is the disk full, or read-only?")


def of_metrics(health: Health) -> Iterator[Fault]:
    """Its figures cannot be asked for; that keeps nobody from starting."""
    if (why := health.against_ready.get(METRICS)) is not None:
        yield fault("metrics", why, refuses=False)


def of_runtime(path: str) -> Fault:
    """The container runtime cannot be reached."""
    return fault("runtime", f"the container runtime does not answer on {path}; is it running, and is that its socket?")
