"""A refusal in the words that were typed: the API server keeps the largest number of any quantity that is larger.

Who applied the pod with kubectl left on it what was typed; of others it is said what stands there. Pure.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from partage_plugins.codecs.quantity import CAPPED
from partage_plugins.errors import DecodeError
from partage_scheduler.objects import ApiPod

APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_AMOUNT: Final = re.compile(r"containers\.(?P<container>[^.\[\]]+)\.(?P<where>limits|requests)\[(?P<key>[^\]]+)\]")
_MEANS: Final = f"{CAPPED!r}, which stands for whatever is larger"


def as_typed(error: DecodeError, pod: ApiPod) -> DecodeError:
    """The same refusal; another only where the amount that it names is the largest there is."""
    if error.value != repr(CAPPED):
        return error
    typed = _typed(pod.metadata.annotations.get(APPLIED, ""), error.path)
    value = _MEANS if typed is None else repr(typed)
    return DecodeError(error.what, path=error.path, value=value, allowed=error.allowed)


def _typed(applied: str, path: str) -> str | None:
    """None where it does not say."""
    match = _AMOUNT.fullmatch(path)
    if match is None:
        return None
    try:
        found: Any = msgspec.json.decode(applied)
        spec = found["spec"]
        (amounts,) = [
            each["resources"][match["where"]]
            for each in (*spec.get("initContainers", ()), *spec["containers"])
            if each["name"] == match["container"]
        ]
        return str(amounts[match["key"]])
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None  # anybody may write that annotation
