"""Chains that network plugins share are taken back only when no container of anybody is in them."""

from __future__ import annotations

import pytest

from partage_cli.machine.setup.packet_rules import removals

NAT = """\
-P PREROUTING ACCEPT
-N CNI-HOSTPORT-DNAT
-N CNI-HOSTPORT-MASQ
-N CNI-HOSTPORT-SETMARK
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
"""
FILTER = """\
-P FORWARD DROP
-N CNI-ADMIN
-N CNI-FORWARD
-N DOCKER-USER
-A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD
-A FORWARD -j DOCKER-USER
-A CNI-FORWARD -m comment --comment "CNI firewall plugin admin overrides" -j CNI-ADMIN
"""


def test_what_is_empty_goes_jumps_first() -> None:
    told = removals(NAT)
    assert told[0] == ["-D", "PREROUTING", "-m", "addrtype", "--dst-type", "LOCAL", "-j", "CNI-HOSTPORT-DNAT"]
    assert [words[0] for words in told] == ["-D"] * 3 + ["-F"] * 3 + ["-X"] * 3


def test_rules_of_others_stay() -> None:
    told = removals(FILTER)
    assert [words[-1] for words in told] == ["CNI-FORWARD", "CNI-FORWARD", "CNI-ADMIN", "CNI-FORWARD", "CNI-ADMIN"]
    assert not removals("-P FORWARD DROP\n-N DOCKER-USER\n-A FORWARD -j DOCKER-USER\n")


@pytest.mark.parametrize(
    "listing",
    [
        FILTER + "-A CNI-FORWARD -s 10.88.0.2/32 -j ACCEPT\n",
        FILTER + "-A CNI-ADMIN -s 10.0.0.0/8 -j DROP\n",
        NAT + "-N CNI-DN-0123456789abcdef\n-A CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-0123456789abcdef\n",
        "",
    ],
)
def test_nothing_goes_while_anybody_uses_it(listing: str) -> None:
    assert removals(listing) == []
