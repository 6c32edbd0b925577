"""The node's broker and the library that it mounts into containers: whether memory limits would be enforced."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partage_cli.doctor.daemons import age_of, is_fresh
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, status_of
from partage_cli.tables import age
from partage_isolation.wire.client import BrokerClient, ControlError, OnlyForRoot
from partage_isolation.wire.messages import BrokerReport
from partage_plugins.api.places import BROKER_ALIVE, BROKER_SOCKET
from partage_plugins.errors import Refused

OBJECTS: Final = ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1")
"""Names that a program may pass to the dynamic loader."""
_READABLE: Final = stat.S_IROTH
_PASSABLE: Final = stat.S_IROTH | stat.S_IXOTH


def broker(node: LocalNode) -> Iterator[Finding]:
    """It is alive, answers, and reports no container above its limits."""
    path = node.path(BROKER_ALIVE)
    about, age_s = About("broker", (str(path), str(node.path(BROKER_SOCKET)))), age_of(path)
    if isinstance(age_s, Unseen) and not age_s.is_missing:
        yield about.unknown(str(age_s), do="ask again as root")
    elif isinstance(age_s, Unseen) or not is_fresh(age_s):
        since = "was never seen" if isinstance(age_s, Unseen) else f"was last seen {age(age_s)} ago"
        yield about.warning(
            f"it {since}: this node can give whole cards alone",
            do="`systemctl status partage-broker`, if parts are wanted",
        )
    else:
        yield from _answering(about, node, age_s)


def library(node: LocalNode) -> Iterator[Finding]:
    """The library is complete, and readable for every user in a container."""
    try:
        folder = BrokerClient(node.root).tell().library
    except (ControlError, Refused) as error:
        yield About("library").unknown(f"not known where it is: {error}")
    else:
        yield _lying_in(Path(folder)) if folder else _not_installed()


def _not_installed() -> Finding:
    return About("library").wrong(
        "none is installed, or not whole, so containers with limits do not start",
        do="`partage-broker --install-library` as root on the node",
    )


def _lying_in(folder: Path) -> Finding:
    about, wrong = About("library", (str(folder),)), _wrong(folder)
    if wrong:
        return about.wrong(
            f"{wrong}, so containers with limits would not start, or run without any",
            do="install partage on this node again",
        )
    return about.ok(f"all of it is in {folder}")


def _answering(about: About, node: LocalNode, age_s: float) -> Iterator[Finding]:
    try:
        told = BrokerClient(node.root).tell()
    except OnlyForRoot:
        yield about.unknown(f"seen {age(age_s)} ago; it tells root alone more", do="ask again as root")
    except (ControlError, Refused) as error:
        yield about.wrong(
            f"seen {age(age_s)} ago, and gives no answer: {error}", do="`journalctl -u partage-broker`; restart it"
        )
    else:
        yield about.ok(_serving(told))
        for finding in told.findings:
            yield about.wrong(finding, do="`partage top` and docs/isolation.md say what that means")


def _serving(told: BrokerReport) -> str:
    count = len(told.containers)
    return f"version {told.broker} serves {count} {'container' if count == 1 else 'containers'}"


def _wrong(folder: Path) -> str | None:
    """Why a program of some user could not load the library, if so."""
    for path, needed in ((folder, _PASSABLE), *((folder / name, _READABLE) for name in OBJECTS)):
        status = status_of(path)
        if isinstance(status, Unseen):
            return str(status)
        if status.st_mode & needed != needed:
            return f"{path} has mode {stat.S_IMODE(status.st_mode):04o}, which keeps other users out"
    return None
