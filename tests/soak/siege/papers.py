"""The ports of a scheduler that is also an extender, and the certificates that it requires."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from rig.identity.certificates import Authority, Use
from rig.identity.identities import write_private
from rig.identity.people import Person
from soak.siege.ports import Caller, Port

HOST: Final = "127.0.0.1"
EXTENDER: Final = "extender"
CALLER: Final = "system:kube-scheduler"


class Papers:
    def __init__(self, root: Path) -> None:
        authority = Authority("extenders")
        pair = authority.issue(Person("partage-extender"), Use.SERVER, ips=(IPv4Address(HOST),))
        write_private(root / "extender.crt", pair.certificate)
        write_private(root / "extender.key", pair.key)
        write_private(root / "callers.crt", authority.certificate)
        caller = authority.issue(Person(CALLER), Use.CLIENT)
        mine, my_key = (
            write_private(root / "caller.crt", caller.certificate),
            write_private(root / "caller.key", caller.key),
        )
        known = Caller(str(root / "callers.crt"), str(mine), str(my_key))
        self.metrics, self.extender = Port("scheduler", HOST, _free()), Port(EXTENDER, HOST, _free(), caller=known)

    @property
    def flags(self) -> tuple[str, ...]:
        return (
            *("--metrics-address", f"{HOST}:{self.metrics.port}"),
            *("--extender-address", f"{HOST}:{self.extender.port}"),
            *("--extender-certificate", "/extender.crt", "--extender-key", "/extender.key"),
            *("--extender-callers", "/callers.crt"),
        )


def _free() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])
