"""The bridge takes addresses that hide nothing which the machine reaches."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from partage_cli.machine.places import BRIDGE
from partage_cli.machine.setup.errors import Unfit
from partage_cli.machine.setup.network import chosen_network, conflist, routes_of

TABLE = f"""\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
vpn0\t0000D50A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
{BRIDGE}\t0000D90A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""


def test_routes_are_those_of_others_and_a_default_route_is_none() -> None:
    assert routes_of(TABLE) == (IPv4Network("192.0.2.0/24"), IPv4Network("10.213.0.0/16"))
    assert routes_of("") == ()


def test_a_network_that_is_free_is_chosen() -> None:
    assert chosen_network(None, ()) == IPv4Network("10.213.0.0/16")
    assert chosen_network(None, routes_of(TABLE)) == IPv4Network("10.217.0.0/16")


def test_where_none_is_free_one_is_asked_for() -> None:
    with pytest.raises(Unfit, match="--network"):
        chosen_network(None, [IPv4Network("10.0.0.0/8")])


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("10.213.7.0/24", "meets 10.213.0.0/16"),
        ("10.213.7.1/24", "host bits"),
        ("8.8.0.0/16", "private"),
        ("10.9.0.0/30", "at most /28"),
        ("fd00::/64", "no network"),
        ("", "no network"),
    ],
)
def test_a_network_that_can_t_be_is_refused_with_the_reason(wanted: str, why: str) -> None:
    with pytest.raises(Unfit, match=why):
        chosen_network(wanted, routes_of(TABLE))


def test_addresses_are_kept_where_a_boot_clears_them() -> None:
    bridge, *others = json.loads(conflist(IPv4Network("10.9.0.0/16"), Path("/n")))["plugins"]
    assert bridge["ipam"]["dataDir"].startswith("/n/run/")
    assert (bridge["bridge"], bridge["ipam"]["ranges"]) == (BRIDGE, [[{"subnet": "10.9.0.0/16"}]])
    assert [each["type"] for each in others] == ["portmap", "firewall"]
