"""The ceiling: a bucket that fills at the limit's rate, and that held time empties. Pure.

Who is below has at least a turn of `on_ns` before it: shorter ones cost more than they give. Debt stays.
"""

from __future__ import annotations

from partage_isolation.leasing.policies.accounts import Account

WHOLE = 1000
"""Milli of a card."""


def fill(account: Account, limit: int, now: int, most: int) -> int:
    """What the bucket holds now."""
    if now > account.room_at:
        account.room = min(most, account.room + (now - account.room_at) * limit // WHOLE)
        account.room_at = now
    return account.room


def opens_at(account: Account, limit: int, now: int, *, on_ns: int, most: int) -> int:
    """When a turn of that length fits."""
    missing = on_ns * (WHOLE - limit) // WHOLE - fill(account, limit, now, most)
    return now if missing <= 0 else now - (-missing * WHOLE // limit)


def lasts_ns(account: Account, limit: int, now: int, most: int) -> int:
    """How long it may run from now on before the bucket is empty."""
    return max(0, fill(account, limit, now, most)) * WHOLE // (WHOLE - limit)
