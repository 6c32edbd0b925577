"""Gangs: `partage.dev/gang: train` with `partage.dev/gang-size: "4"` on each of four pods of one namespace.

Both keys are required. Pods with the same gang name but different sizes belong to different gangs, so a wrong number
keeps its pods waiting for others, and never binds too few.

Without these keys the labels of KubeShare 2 are read: the group's name (`sharedgpu/group_name`), its number of pods,
and the fraction that must run at least. The pods that are bound at once are `group_threshold` times `group_headcount`,
rounded to the nearest. As in KubeShare, a pod without all three has no group, and neither does one whose group rounds
to none. Older versions write `min_available`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_FLOOR, Decimal
from typing import Final

from partage_plugins.api import keys
from partage_plugins.api.names import IN_WORDS, TAG_PATTERN, Namespace
from partage_plugins.api.pods import Gang
from partage_plugins.codecs.quantity import parse_whole_quantity
from partage_plugins.errors import DecodeError

MOST_PODS: Final = 1000
_NAMES: Final = ("sharedgpu/group_name", "sharedgpu/pod_group_name")
"""The label that KubeShare's code reads, and the one that its README documents."""
HEADCOUNT: Final = "sharedgpu/group_headcount"
THRESHOLD: Final = "sharedgpu/group_threshold"
LEAST: Final = "sharedgpu/min_available"
_COUNT: Final = re.compile(r"\+?[0-9]{1,9}", re.ASCII)
_PART: Final = re.compile(r"\+?([0-9]{1,9}(\.[0-9]{0,20})?|\.[0-9]{1,20})", re.ASCII)
_HALF: Final = Decimal("0.5")


def read_gang(namespace: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> Gang | None:
    """The pod's gang, or None."""
    name, size = annotations.get(keys.GANG), annotations.get(keys.GANG_SIZE)
    if name is None and size is None:
        return _read_group(namespace, labels)
    if name is None or re.search(TAG_PATTERN, name) is None:
        raise _refused(keys.GANG, name, f"the gang's name beside {keys.GANG_SIZE}: {IN_WORDS[TAG_PATTERN]}")
    if size is None:
        raise _refused(keys.GANG_SIZE, size, f"beside {keys.GANG}, how many pods are bound at once")
    number = parse_whole_quantity(size, path=keys.GANG_SIZE, largest=MOST_PODS)
    if not 1 <= number <= MOST_PODS:
        raise _refused(keys.GANG_SIZE, size, f"from 1 to {MOST_PODS}")
    return Gang(namespace=Namespace(namespace), name=name, size=number)


def _read_group(namespace: str, labels: Mapping[str, str]) -> Gang | None:
    """The gang that the pod's labels describe, or None."""
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


def _refused(path: str, value: str | None, allowed: str) -> DecodeError:
    return DecodeError("request", path=path, value="not there" if value is None else repr(value), allowed=allowed)
