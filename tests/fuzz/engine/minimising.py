"""Shortens a failing input as far as a few seconds allow."""

from collections.abc import Callable


def shortened(data: bytes, still_fails: Callable[[bytes], bool], *, has_time: Callable[[], bool]) -> bytes:
    """Removes ever smaller blocks while the input still fails, until none can be removed or time is up."""
    size = max(1, len(data) // 2)
    while has_time():
        shorter = _without_blocks(data, size, still_fails, has_time)
        if size == 1 and shorter == data:
            break
        size = max(1, size // 2)
        data = shorter
    return data


def _without_blocks(
    data: bytes, size: int, still_fails: Callable[[bytes], bool], has_time: Callable[[], bool]
) -> bytes:
    at = 0
    while at < len(data) and has_time():
        shorter = data[:at] + data[at + size :]
        if still_fails(shorter):
            data = shorter
        else:
            at += size
    return data
