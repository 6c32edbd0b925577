"""etcd: where the API server keeps everything.

Nothing is forced onto the disk (`unsafe-no-fsync`): a rig survives the death of its etcd, and need not survive the
machine's. Its authority is not the cluster's, and it asks everyone for a certificate of that authority.
"""

from __future__ import annotations

from typing import Final

from rig.control.readiness import answers, trusting
from rig.control.settings import ETCD_PEER_PORT, ETCD_PORT, ControlSettings, Flags, Place
from rig.machine.components import Component

NAME: Final = "etcd"


def etcd(place: Place, settings: ControlSettings) -> Component:
    program = place.program(NAME, {**_flags(place), **settings.etcd_flags}, gates={})
    context = trusting(place.identities.etcd_ca, place.identities.etcd_client("readiness"))
    return Component(program, answers((str(place.addresses.host), ETCD_PORT), "/readyz", context))


def _flags(place: Place) -> Flags:
    serving = place.identities.etcd_server(place.addresses.host)
    clients, peers = place.url(ETCD_PORT), place.url(ETCD_PEER_PORT)
    return {
        "name": "rig",
        "data-dir": str(place.run_folder / "etcd"),
        "unsafe-no-fsync": "true",
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"rig={peers}",
        **_tls("", place, str(serving.certificate), str(serving.key)),
        **_tls("peer-", place, str(serving.certificate), str(serving.key)),
        # One member elects itself: it waits for nobody, so it need not wait long.
        "heartbeat-interval": "20",
        "election-timeout": "200",
        "log-level": "warn",
    }


def _tls(prefix: str, place: Place, certificate: str, key: str) -> Flags:
    return {
        f"{prefix}cert-file": certificate,
        f"{prefix}key-file": key,
        f"{prefix}client-cert-auth": "true",
        f"{prefix}trusted-ca-file": str(place.identities.etcd_ca),
    }
