"""Whether pods with claims can start here: cards in the pool `dra`, and a DRA driver that answers kubelet."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

from partage_base.claim_records import ClaimRecords
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.inventory import inventory_of
from partage_cli.doctor.local_node import LocalNode
from partage_plugins.api import GPU, Inventory
from partage_plugins.api.claims import ClaimUid
from partage_plugins.api.places import DRA_REGISTRATION, DRA_SOCKET
from partage_plugins.errors import DecodeError

_WITHIN_S: Final = 2.0
_START: Final = "`kubectl -n partage-system get pods -l app.kubernetes.io/name=partage-dra -o wide`; its log says why"


def claims(node: LocalNode) -> Iterator[Finding]:
    """Yields nothing if no card is in the pool `dra` and no claim is prepared."""
    about = About("claims", (str(node.path(DRA_SOCKET)), str(node.path(DRA_REGISTRATION))))
    read = inventory_of(node)
    part = read.part(GPU) if isinstance(read, Inventory) else None
    cards = [card for card in part.cards if card.pool == "dra"] if part else []
    records = ClaimRecords(node.root)
    try:
        uids = records.uids()
        unread = [str(uid) for uid in uids if not _is_readable(records, uid)]
    except PermissionError as error:
        yield about.unknown(str(error), do="ask again as root")
        return
    if not cards and not uids:
        return
    try:
        why = _why_silent(node)
    except PermissionError:
        yield about.unknown("whether the driver answers is told to root alone", do="ask again as root")
        return
    if why is not None:
        yield about.wrong(f"{why}, so no pod with a claim starts or ends here", do=_START)
    elif not cards:
        yield about.warning(
            f"{len(uids)} claims are in force, and no card is for claims any more",
            do="drain the node, or say PARTAGE_GPU_DRA to the advertiser again",
        )
    else:
        yield about.ok(f"the driver answers; {len(cards)} cards are for claims, {len(uids)} claims are in force")
    if unread:
        yield about.wrong(
            f"records of {len(unread)} claims can't be read ({', '.join(unread[:4])}), so no further claim is prepared",
            do="delete the pods that have these claims",
        )


def _is_readable(records: ClaimRecords, uid: ClaimUid) -> bool:
    try:
        records.of(uid)
    except DecodeError:
        return False
    return True


def _why_silent(node: LocalNode) -> str | None:
    """Why one of both sockets doesn't connect: kubelet registers by one, calls the other. Raises `PermissionError`."""
    for path, who in ((DRA_REGISTRATION, "kubelet finds no DRA driver"), (DRA_SOCKET, "no DRA driver answers")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.settimeout(_WITHIN_S)
            try:
                caller.connect(str(node.path(path)))
            except PermissionError:
                raise
            except OSError as error:
                return f"{who} at {node.path(path)} ({error.strerror or error})"
    return None
