"""In any dialect a pod either has a request or is refused in one line, and equal pods have equal requests.

All installed dialects read the pod together, as in the scheduler, once for each reader of `nvidia.com/gpu`. The input
is a pod's manifest in JSON. The rows of the dialects' conformance are the seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fuzz import _codecs
from partage_plugins.api import Pod
from partage_plugins.errors import DecodeError, Refused
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.decision import Ledger
from partage_scheduler.objects import ApiPod, seen
from support.dialect_rows import FILES, all_plugins_where, rows_of

_LONGEST: Final = 700
_READER: Final = msgspec.json.Decoder(ApiPod)
_PODS: Final = tuple(row.manifest for file in FILES for row in rows_of(file))


def _words(pod: dict[str, Any]) -> Iterator[str]:
    """Keys and values of its requests."""
    said = [pod["metadata"].get("labels", {}), pod["metadata"].get("annotations", {})]
    for container in (*pod["spec"].get("initContainers", ()), *pod["spec"].get("containers", ())):
        said += container.get("resources", {}).values()
    for each in said:
        for key, value in each.items():
            yield from (str(key), str(value))


SEEDS: Final = tuple(msgspec.json.encode(pod) for pod in _PODS)
DICTIONARY: Final = (
    *sorted({word.encode() for pod in _PODS for word in _words(pod)}),
    *(b"NaN", b"-0", b"1e99", b".5", b"0x1p-1", b"1_0"),
)
_SIDES: Final = tuple(SchedulerFramework(all_plugins_where(each), Ledger()) for each in ("kubelet", "whole", "hami"))


def target(data: bytes) -> str:
    try:
        pod, same = seen(_READER.decode(data)), seen(_READER.decode(data))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "no pod"
    return ", ".join(_said(framework, pod, same) for framework in _SIDES)


def _said(framework: SchedulerFramework, pod: Pod, same: Pod) -> str:
    try:
        request = framework.requests(pod)
    except DecodeError as error:
        return _codecs.refused(error)
    except Refused as error:
        said = str(error)
        if len(said) >= _LONGEST or not said.isprintable():
            raise AssertionError(f"a refusal that is no short, printable line: {said!r}") from error
        return f"refused: {said[:30]}"
    again = framework.requests(same)
    if request != again or hash(request) != hash(again):
        raise AssertionError(f"equal pods asked for something else: {request}, then {again}")
    return f"asks for {len(request.containers)}"
