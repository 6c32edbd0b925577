"""Groups as KubeShare 2 writes them, in labels: `sharedgpu/group_name`, of how many pods, and which part at least.

The pods that are bound at once are `group_threshold` times `group_headcount`, rounded to the nearest. As KubeShare, a
pod without all three is of no group, and neither is one whose group rounds to none. Older ones say `min_available`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_FLOOR, Decimal
from typing import Final

from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary.names import Namespace
from partage_plugins.vocabulary.pods import Gang

MOST_PODS: Final = 1000
_NAMES: Final = ("sharedgpu/group_name", "sharedgpu/pod_group_name")
"""What its code reads, and what its README says."""
HEADCOUNT: Final = "sharedgpu/group_headcount"
THRESHOLD: Final = "sharedgpu/group_threshold"
LEAST: Final = "sharedgpu/min_available"
_COUNT: Final = re.compile(r"\+?[0-9]{1,9}", re.ASCII)
_PART: Final = re.compile(r"\+?([0-9]{1,9}(\.[0-9]{0,20})?|\.[0-9]{1,20})", re.ASCII)
_HALF: Final = Decimal("0.5")


def read_group(namespace: str, labels: Mapping[str, str]) -> Gang | None:
    """The gang that labels make a pod one of, or None."""
    name = next((labels[key] for key in _NAMES if labels.get(key)), None)
    if name is None:
        return None
    size = _size(labels)
    if size > MOST_PODS:
        raise _refused(
            HEADCOUNT, labels.get(HEADCOUNT, ""), f"of a group of which at most {MOST_PODS} are bound at once"
        )
    return Gang(namespace=Namespace(namespace), name=name, size=size) if size else None


def _size(labels: Mapping[str, str]) -> int:
    if labels.get(HEADCOUNT) and labels.get(THRESHOLD):
        part = labels[THRESHOLD]
        if not _PART.fullmatch(part) or not Decimal(part):
            raise _refused(THRESHOLD, part, "the part of the group that is bound at once, such as 0.5")
        return int((Decimal(part) * _count(labels, HEADCOUNT) + _HALF).to_integral_value(ROUND_FLOOR))
    return _count(labels, LEAST) if labels.get(LEAST) else 0


def _count(labels: Mapping[str, str], key: str) -> int:
    number = int(labels[key]) if _COUNT.fullmatch(labels[key]) else 0
    if number < 1:
        raise _refused(key, labels[key], "how many pods, a whole number from 1")
    return number


def _refused(key: str, value: str, allowed: str) -> DecodeError:
    return DecodeError("request", path=key, value=repr(value), allowed=allowed)
