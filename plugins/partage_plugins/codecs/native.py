"""The native dialect: requests for cards with keys under `partage.dev/` (contract 1).

Amounts are limits of a container and totals over its cards; policies are annotations of the pod and hold for all
containers, or for those named as in `train: 1000; side: 200`. Any key under our prefix that is not understood is
refused by name: a typing error must not result in a pod without its limit.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec.structs import replace

from partage_plugins.api import keys
from partage_plugins.api.gpu import GpuRequest
from partage_plugins.api.limits import MAX_CARDS, WHOLE_MILLI
from partage_plugins.api.names import ContainerName
from partage_plugins.api.pods import Budgeted, Pod, PodContainer
from partage_plugins.api.topology import Bundle
from partage_plugins.codecs.native_annotations import Policies, by_container, read_budgets, read_policies, unknown
from partage_plugins.codecs.quantity import format_bytes, parse_bytes, parse_quantity, parse_whole_quantity
from partage_plugins.errors import DecodeError, Refused

WHAT: Final = "request"
_MAX_MILLI: Final = MAX_CARDS * WHOLE_MILLI
_MAX_BYTES: Final = 2**62


class _Amounts(NamedTuple):
    """Totals of one container as written; 0 where none is given."""

    milli: int
    memory_bytes: int
    cards: int


_NOTHING: Final = _Amounts(0, 0, 0)


def read_requests(pod: Pod, *, default_limit_milli: int = WHOLE_MILLI) -> dict[ContainerName, GpuRequest]:
    """The request of each container of a pod; empty if none makes a request in this dialect."""
    asking = {each.name: amount for each in pod.containers if any(amount := _read_amounts(each))}
    names = tuple([each.name for each in pod.containers])
    policies = read_policies(pod.annotations, names=names, asking=tuple(asking))
    found = {name: _request(name, amount, policies[name], default_limit_milli) for name, amount in asking.items()}
    if keys.MOVABLE in pod.annotations:
        _require_one_that_moves(pod.annotations[keys.MOVABLE], names, asking=found)
        for container in pod.containers:
            if container.name in found:
                _require_movable(container, found[container.name])
    return found


def read_asks(pod: Pod) -> dict[ContainerName, GpuRequest | Budgeted]:
    """The same, with the budgets that containers use.

    A budget for all is one for the app containers that make a request. A container that is named, and requests nothing,
    uses the budget too: amounts need to be written only once, which is how often a quota should count them.
    """
    requests = read_requests(pod)
    if keys.BUDGET not in pod.annotations:
        return dict(requests)
    asking = tuple(each.name for each in pod.containers if each.role == "app" and each.name in requests)
    names = tuple(each.name for each in pod.containers)
    budgets = read_budgets(pod.annotations, names=names, by_default=asking)
    asks: dict[ContainerName, GpuRequest | Budgeted] = dict(requests)
    for name, budget in budgets.items():
        said = (requests[each] for each, other in budgets.items() if other == budget and each in requests)
        ask = requests.get(name) or next(said, None)
        if ask is not None and ask.movable:
            raise Refused(f"{keys.MOVABLE}: container {name} uses budget {budget}, and a budget's memory does not move")
        if ask is None:
            allowed = "a budget of which at least one container asks for cards"
            raise _refused(keys.BUDGET, repr(f"{name}: {budget}"), allowed)
        asks[name] = Budgeted(budget=budget, ask=ask)
    return asks


def _require_one_that_moves(text: str, names: tuple[ContainerName, ...], *, asking: Collection[ContainerName]) -> None:
    """Refuses a pod that opts in but has no container with a request in this dialect: nothing would move."""
    if not asking and "yes" in by_container(keys.MOVABLE, text, names).values():
        allowed = f"a pod with a container that asks by {keys.GPU_MEMORY}"
        raise DecodeError("request", path=keys.MOVABLE, value=repr(text), allowed=allowed)


def _require_movable(container: PodContainer, wanted: GpuRequest) -> None:
    """Refuses a movable container that has all of a card, no amount of memory, or too little main memory."""
    if not wanted.movable:
        return
    name = container.name
    if wanted.share_milli == WHOLE_MILLI:
        raise Refused(f"{keys.MOVABLE}: container {name} has all of a card's time and never makes room; ask for a part")
    if wanted.count > 1:
        raise Refused(
            f"{keys.MOVABLE}: container {name} asks for {wanted.count} cards, and memory moves from one alone: "
            "programs on several reach each other's"
        )
    if wanted.memory_bytes is None:
        raise Refused(f"{keys.MOVABLE}: container {name} must say by {keys.GPU_MEMORY} how much memory is to be moved")
    moved_bytes = wanted.memory_bytes
    said = container.limits.get("memory")
    if said is None or parse_quantity(said, path=f"containers.{name}.limits[memory]") < moved_bytes:
        size = format_bytes(moved_bytes)
        has = "has none" if said is None else f"has {said}"
        raise Refused(f"movable memory of {size} needs limits.memory of at least {size} on container {name}; it {has}")


def _read_amounts(container: PodContainer) -> _Amounts:
    said = [key for key in (*container.limits, *container.requests) if key.startswith(keys.PREFIX)]
    if not said:
        return _NOTHING
    at = f"containers.{container.name}"
    for key in said:
        if key not in keys.GPU_RESOURCES:
            where = "limits" if key in container.limits else "requests"
            raise unknown(f"{at}.{where}", key, keys.GPU_RESOURCES)

    def total(key: str, largest: int) -> int:
        if key not in said:
            return 0
        parse = parse_bytes if key == keys.GPU_MEMORY else parse_whole_quantity
        limit = parse(container.limits.get(key, "0"), path=f"{at}.limits[{key}]", largest=largest)
        _refuse_other(container.requests.get(key), limit, path=f"{at}.requests[{key}]")
        return limit

    return _Amounts(total(keys.GPU_MILLI, _MAX_MILLI), total(keys.GPU_MEMORY, _MAX_BYTES), total(keys.GPUS, MAX_CARDS))


def _refuse_other(text: str | None, limit: int, *, path: str) -> None:
    """Requests and limits of extended resources must be equal in Kubernetes, however each is written."""
    if text is not None and parse_quantity(text, path=path) != limit:
        raise _refused(path, repr(text), "the same amount as in limits")


def _request(name: ContainerName, amount: _Amounts, policy: Policies, default_limit_milli: int) -> GpuRequest:
    at = f"containers.{name}.limits"
    if not amount.milli and not amount.memory_bytes:
        how = f"together with {keys.GPU_MILLI} ({WHOLE_MILLI} for each whole card) or {keys.GPU_MEMORY}"
        raise _refused(f"{at}[{keys.GPUS}]", str(amount.cards), how)
    count = amount.cards or _count(amount.milli, at)
    share = _each(amount.milli, count, path=f"{at}[{keys.GPU_MILLI}]")
    if share > WHOLE_MILLI:
        raise _refused(f"{at}[{keys.GPU_MILLI}]", str(amount.milli), f"at most {WHOLE_MILLI * count} on {count} cards")
    return replace(
        policy.wishes,
        count=count,
        share_milli=share,
        limit_milli=_limit(policy.limit_milli, share, count, max(default_limit_milli, share)),
        memory_bytes=_each(amount.memory_bytes, count, path=f"{at}[{keys.GPU_MEMORY}]") or None,
        bundles=_bundles(name, policy, count),
    )


def _bundles(name: ContainerName, policy: Policies, count: int) -> tuple[Bundle, ...]:
    """One bundle of all its cards; none for a single card."""
    if policy.topology is None or count == 1:
        return ()
    if policy.wishes.repeats_cards:
        raise _refused(keys.TOPOLOGY, repr(policy.topology), f"without {keys.REPEAT_CARDS}, for container {name}")
    return (Bundle(policy.topology, count),)


def _count(milli: int, at: str) -> int:
    if milli <= WHOLE_MILLI:
        return 1
    if milli % WHOLE_MILLI:
        how = f"a multiple of {WHOLE_MILLI}, or {keys.GPUS} beside it to say on how many cards"
        raise _refused(f"{at}[{keys.GPU_MILLI}]", str(milli), how)
    return milli // WHOLE_MILLI


def _limit(total: int | None, share: int, count: int, default: int) -> int:
    if total is None:
        return default
    limit = _each(total, count, path=keys.LIMIT_MILLI)
    if not share <= limit <= WHOLE_MILLI or not limit:
        lowest, highest = max(share * count, count), WHOLE_MILLI * count
        raise _refused(keys.LIMIT_MILLI, str(total), f"from {lowest} (the share) to {highest} on {count} cards")
    return limit


def _each(total: int, count: int, *, path: str) -> int:
    """A total divided evenly over the cards."""
    if total % count:
        raise _refused(path, str(total), f"an amount that {count} cards divide evenly")
    return total // count


def _refused(path: str, value: str, allowed: str) -> DecodeError:
    return DecodeError(WHAT, path=path, value=value, allowed=allowed)
