"""How the child that loads NVML has the driver itself hold a control group to a limit: from branch 615 on.

The soft limit stays 0. It would reserve memory, and not only for the group: the driver adds it to every group above,
where it stays when the container's group is removed. A limit without one ends with its group.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

_NAME: Final = "nvmlDeviceSetMemoryLimits_v1"


class _Limits(ctypes.Structure):
    _fields_ = (("cgroup", ctypes.c_char_p), ("soft", ctypes.c_ulonglong), ("hard", ctypes.c_ulonglong))


def has_limits(nvml: ctypes.CDLL) -> bool:
    return hasattr(nvml, _NAME)


def limit(nvml: Any, handle: ctypes.c_void_p, group: str, limit_bytes: int) -> int:  # noqa: ANN401  ctypes makes it
    """Answers with what NVML does: 0, or the number of its error."""
    limits = _Limits(group.encode(), 0, limit_bytes)
    answer: int = getattr(nvml, _NAME)(handle, ctypes.byref(limits))
    return answer
