"""Gangs: `partage.dev/gang: train` with `partage.dev/gang-size: "4"` on each of four pods of one namespace.

Both keys or none. Pods of one name that say different sizes are of different gangs, so a wrong number keeps its pods
waiting for others, and never binds too few. Without them the labels of KubeShare's `groups` say it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from partage_plugins.codecs.groups import MOST_PODS, read_group
from partage_plugins.codecs.quantity import parse_whole_quantity
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import keys
from partage_plugins.vocabulary.names import IN_WORDS, TAG_PATTERN, Namespace
from partage_plugins.vocabulary.pods import Gang

__all__ = ["MOST_PODS", "read_gang"]


def read_gang(namespace: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> Gang | None:
    """The gang that a pod is of, or None."""
    name, size = annotations.get(keys.GANG), annotations.get(keys.GANG_SIZE)
    if name is None and size is None:
        return read_group(namespace, labels)
    if name is None or re.search(TAG_PATTERN, name) is None:
        raise _refused(keys.GANG, name, f"the gang's name beside {keys.GANG_SIZE}: {IN_WORDS[TAG_PATTERN]}")
    if size is None:
        raise _refused(keys.GANG_SIZE, size, f"beside {keys.GANG}, how many pods are bound at once")
    number = parse_whole_quantity(size, path=keys.GANG_SIZE, largest=MOST_PODS)
    if not 1 <= number <= MOST_PODS:
        raise _refused(keys.GANG_SIZE, size, f"from 1 to {MOST_PODS}")
    return Gang(namespace=Namespace(namespace), name=name, size=number)


def _refused(path: str, value: str | None, allowed: str) -> DecodeError:
    return DecodeError("request", path=path, value="not there" if value is None else repr(value), allowed=allowed)
