"""Writes the requests of a pod's containers as variables for the agent of one machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partage_cli.translate.native import beyond_amounts, words_for
from partage_oci.words import CARDS, LIMIT, MEMORY, SHARE
from partage_plugins.api import GPU, ContainerName, Gang, PodRequest, keys
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.errors import Refused

_AMOUNTS: Final[Mapping[str, str]] = {keys.GPU_MILLI: SHARE, keys.GPU_MEMORY: MEMORY, keys.GPUS: CARDS}


def variables_for(request: PodRequest, gang: Gang | None) -> dict[ContainerName, dict[str, str]]:
    """Variables by container; raises `Refused` for a request without a variable."""
    words = words_for(request, gang)
    if others := sorted(words.annotations.keys() - {keys.LIMIT_MILLI}):
        raise Refused(f"there is no variable for {others[0]}; say it by podman run --annotation, or leave it out")
    asks = request.of(GPU)
    found = dict[ContainerName, dict[str, str]]()
    for name, limits in words.limits.items():
        if (more := beyond_amounts(ask := asks[name])) is not None:
            raise Refused(f"there is no variable for {more}, which {name} asks for; say an amount in its place")
        found[name] = {_AMOUNTS[key]: text for key, text in limits.items()}
        if ask.limit_milli < WHOLE_MILLI:
            found[name][LIMIT] = str(ask.limit_milli * ask.count)
    return found
