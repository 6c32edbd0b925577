"""Which rules for packets the network plugins leave behind when no container is left. Pure.

The plugins of any CNI program make and use the same chains, so one goes only where nothing stands in it but what they
put there at their first use; they make it again when they need it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

_CHAINS: Final = ("CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-SETMARK", "CNI-HOSTPORT-MASQ", "CNI-FORWARD", "CNI-ADMIN")
_OF_A_CONTAINER: Final = ("CNI-DN-", "CNI-SN-")
_MARKS: Final = ("CNI-HOSTPORT-SETMARK", "CNI-HOSTPORT-MASQ")
"""Their rules name no container."""


def removals(listing: str) -> list[list[str]]:
    """What to tell iptables, word by word and in this order, given what `iptables -S` says of a table."""
    rules = [shlex.split(line) for line in listing.splitlines()]
    made = {rule[1] for rule in rules if rule[:1] == ["-N"]}
    ours = [chain for chain in _CHAINS if chain in made]
    appended = [rule for rule in rules if rule[:1] == ["-A"]]
    if any(chain.startswith(_OF_A_CONTAINER) for chain in made) or any(_is_in_use(rule) for rule in appended):
        return []
    jumps = [["-D", *rule[1:]] for rule in appended if rule[1] not in ours and _target(rule) in ours]
    return [*jumps, *(["-F", chain] for chain in ours), *(["-X", chain] for chain in ours)]


def _is_in_use(rule: Sequence[str]) -> bool:
    return rule[1] in _CHAINS and rule[1] not in _MARKS and _target(rule) not in _CHAINS


def _target(rule: Sequence[str]) -> str:
    return rule[rule.index("-j") + 1] if "-j" in rule else ""
