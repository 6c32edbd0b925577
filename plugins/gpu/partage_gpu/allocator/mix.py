"""Names of policies, alone or weighted: `fgd+`, or `fgd+:2,topology:1`.

This module parses them; `policies` defines what each prefers. On a pod, where `:` separates containers, the weight is
written with `=`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from partage_plugins.errors import Refused

POLICIES: Final = ("binpack", "spread", "kubeshare", "fgd", "fgd+", "topology")
DEFAULT: Final = "fgd+"
_ENTRY: Final = re.compile(r"([a-z+]+)(?:[:=]([0-9]{1,3}))?", re.ASCII)
_MOST: Final = 160


class Mix(NamedTuple):
    """Policies with their weights, which sum to 1; in a fixed order, so that equal mixes compare equal."""

    weights: tuple[tuple[str, float], ...]

    @property
    def alone(self) -> str | None:
        """The policy, if there is only one."""
        return self.weights[0][0] if len(self.weights) == 1 else None

    def without(self, policy: str) -> Mix:
        """The other policies, with unchanged weights."""
        return Mix(tuple((name, weight) for name, weight in self.weights if name != policy))

    def weight_of(self, policy: str) -> float:
        """The weight of a policy; 0 if it is not in the mix."""
        return next((weight for name, weight in self.weights if name == policy), 0.0)


@lru_cache(maxsize=256)
def read_mix(text: str) -> Mix:
    """Parses a mix, or raises `Refused` with the allowed values."""
    weights: dict[str, int] = {}
    for entry in text.split(","):
        found = _ENTRY.fullmatch(entry.strip())
        if found is None or found[1] not in POLICIES or found[1] in weights or len(text) > _MOST:
            raise Refused(_allowed(text))
        weights[found[1]] = int(found[2] or 1)
    total = sum(weights.values())
    if not total:
        raise Refused(_allowed(text))
    return Mix(tuple((name, weights[name] / total) for name in POLICIES if weights.get(name)))


def _allowed(text: str) -> str:
    names = ", ".join(POLICIES)
    return f"policy {text!r:.80} is not known; allowed: one of {names}, or several with weights, fgd+:2,topology:1"
