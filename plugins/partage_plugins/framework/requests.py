"""Checks plugins' requests and owners' grants, and assembles them by container."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from partage_plugins.api.kinds import AnyKind, Role
from partage_plugins.api.names import BudgetName, BudgetNameText, ContainerName, Kind, grantee_of
from partage_plugins.api.pods import Budgeted, BudgetUse, ContainerRequest, Pod, PodRequest
from partage_plugins.api.words import DialectWords
from partage_plugins.errors import Refused
from partage_plugins.framework.batches import nonsense
from partage_plugins.registry.calls import Call
from partage_plugins.registry.registry import Registry

_MAPPING: Final = (dict, Mapping)
"""The most common type first: an `isinstance` check of an abstract class takes half a microsecond."""
_ANNOTATION: Final = re.compile(r"(?!([a-z0-9.-]*\.)?partage\.dev/)[a-z0-9.-]{1,253}/[A-Za-z0-9._-]{1,63}")
_RESOURCE: Final = re.compile(r"(?!([a-z0-9.-]*\.)?kubernetes\.io/)[a-z0-9.-]{1,253}/[A-Za-z0-9._-]{1,63}")


def check_asks(
    call: Call, answer: object, pod: Pod, registry: Registry
) -> Iterator[tuple[ContainerName, Kind, object]]:
    """One plugin's requests, each of the type that its kind's owner declared, or `Budgeted` with such a request."""
    names = {container.name for container in pod.containers}
    if not isinstance(answer, _MAPPING):
        raise nonsense(call, f"returned {type(answer).__name__}; allowed: requests by container and kind, or None")
    for name, asks in answer.items():
        if name not in names or not isinstance(asks, _MAPPING):
            raise nonsense(
                call, f"returned {asks!r:.80} for {name!r}; allowed: requests by kind, for the pod's containers"
            )
        for kind_name, ask in asks.items():
            if isinstance(ask, Budgeted):
                _check_budget(call, ask)
                _check(call, kind_name, ask.ask, registry)
            else:
                _check(call, kind_name, ask, registry)
            yield name, kind_name, ask


def check_resources(call: Call, answer: object) -> Sequence[str]:
    """Checks names of resources, which must have a domain other than Kubernetes' own."""
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        raise nonsense(call, f"returned {type(answer).__name__}; allowed: a sequence of names of resources")
    for name in answer:
        if not isinstance(name, str) or _RESOURCE.fullmatch(name) is None:
            raise nonsense(call, f"named {name!r:.80}; allowed: resources with a domain, not Kubernetes' own")
    return answer


def check_words(call: Call, answer: object) -> Sequence[DialectWords]:
    """Checks the keys of dialects; no prefix may be empty, or it would match every key."""
    if not isinstance(answer, Sequence) or not all(isinstance(each, DialectWords) for each in answer):
        raise nonsense(call, f"returned {answer!r:.80}; allowed: a sequence of {DialectWords.__name__}")
    try:
        msgspec.convert(msgspec.to_builtins(answer), tuple[DialectWords, ...])
    except (msgspec.ValidationError, TypeError) as error:
        raise nonsense(call, f"returned words with a wrong value: {error}") from None
    if any("" in (*each.prefixes, *each.families) for each in answer):
        raise nonsense(call, "named an empty prefix; allowed: prefixes with a character or more")
    return answer


def check_annotations(call: Call, answer: object) -> Mapping[str, str]:
    """Checks annotations of another system."""
    if not isinstance(answer, Mapping):
        raise nonsense(call, f"returned {type(answer).__name__}; allowed: annotations, or None")
    for key, text in answer.items():
        if not isinstance(key, str) or not isinstance(text, str) or _ANNOTATION.fullmatch(key) is None:
            raise nonsense(call, f"returned {key!r:.80}; allowed: annotations as text, not below partage.dev/")
    return answer


def pod_request(pod: Pod, asks: Mapping[tuple[ContainerName, Kind], object]) -> PodRequest:
    """A pod's whole request: containers in the pod's order, then budgets; kinds by name.

    Refused if containers of one budget make different requests, or if one of them is not an app container: the others
    end before the app containers begin, or run with those that do.
    """
    own: dict[ContainerName, dict[Kind, object]] = {}
    budgets: dict[BudgetName, dict[Kind, tuple[ContainerName, object]]] = {}
    uses: list[BudgetUse] = []
    roles: dict[ContainerName, Role] = {container.name: container.role for container in pod.containers}
    for (name, kind), ask in asks.items():
        if not isinstance(ask, Budgeted):
            own.setdefault(name, {})[kind] = ask
            continue
        if roles[name] != "app":
            raise Refused(
                f"container {name} ({roles[name]}) is to use budget {ask.budget} of {kind}; "
                "only app containers may use a budget"
            )
        first, same = budgets.setdefault(ask.budget, {}).setdefault(kind, (name, ask.ask))
        if same != ask.ask:
            raise Refused(
                f"containers {first} and {name} use budget {ask.budget} of {kind} and ask for different things; "
                "ask for the same in each: it is granted once"
            )
        uses.append(BudgetUse(name, kind, ask.budget))
    containers = [
        ContainerRequest(name=name, role=role, asks=_by_kind(own[name])) for name, role in roles.items() if name in own
    ]
    for budget, kinds in sorted(budgets.items()):
        wanted = {kind: ask for kind, (_, ask) in kinds.items()}
        containers.append(ContainerRequest(name=grantee_of(budget), role="app", asks=_by_kind(wanted)))
    return PodRequest(pod=pod.ref, containers=tuple(containers), uses=tuple(sorted(uses)))


def check_grants(
    call: Call, answer: object, request: PodRequest, kind: AnyKind
) -> dict[ContainerName, tuple[Any, ...]]:
    """An owner's grants, every value checked: for each container that requests the kind, and for no other."""
    if not isinstance(answer, Mapping):
        raise nonsense(call, f"returned {type(answer).__name__}; allowed: grants by container")
    asking = set(request.of(kind))
    if set(answer) != asking:
        raise nonsense(
            call, f"granted to {sorted(map(str, answer))}; allowed: exactly the containers that ask, {sorted(asking)}"
        )
    return {name: _checked_grants(call, name, grants, kind) for name, grants in answer.items()}


def _by_kind(asks: Mapping[Kind, object]) -> tuple[tuple[Kind, object], ...]:
    return tuple([(kind, asks[kind]) for kind in sorted(asks)])


def _check_budget(call: Call, ask: Budgeted) -> None:
    try:
        msgspec.convert(ask.budget, BudgetNameText)
    except msgspec.ValidationError as error:
        raise nonsense(call, f"named a budget {ask.budget!r:.80}: {error}") from None


def _check(call: Call, kind_name: Kind, ask: object, registry: Registry) -> None:
    kind = registry.kind(kind_name)
    if kind is None:
        raise Refused(
            f"no plugin allocates {kind_name}, for which {call.plugin} read a request; is its plugin installed?"
        )
    if not isinstance(ask, kind.request):
        raise nonsense(call, f"returned {type(ask).__name__} for {kind_name}; allowed: {kind.request.__name__}")
    try:
        hash(ask)
        msgspec.convert(msgspec.to_builtins(ask), kind.request)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise nonsense(call, f"returned a request for {kind_name} with a wrong value: {error}") from None


def _checked_grants(call: Call, name: ContainerName, grants: object, kind: AnyKind) -> tuple[Any, ...]:
    if not isinstance(grants, Sequence) or not grants or not all(isinstance(grant, kind.grant) for grant in grants):
        raise nonsense(call, f"granted {grants!r:.80} to {name}; allowed: one or more of {kind.grant.__name__}")
    try:
        return tuple([msgspec.convert(msgspec.to_builtins(grant), kind.grant) for grant in grants])
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise nonsense(call, f"granted a wrong value to {name}: {error}") from None
