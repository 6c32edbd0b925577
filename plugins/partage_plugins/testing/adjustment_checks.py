"""Checks of a node plugin's changes to containers, in this process and in the real plugin host.

For a plugin with a scheduler side as well: both sides declare the same kind, and the node side applies the scheduler
side's grants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from string import ascii_lowercase, digits
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_plugins.api.containers import Adjustment, Granted
from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.names import Kind
from partage_plugins.codecs.signature import key_id, sign, verify
from partage_plugins.errors import DecodeError, Refused
from partage_plugins.testing import examples
from partage_plugins.testing.check import Broken, Case, check, hold, unchanged
from partage_plugins.testing.granted import GrantedContainer, granted_containers, placed_pods
from partage_plugins.testing.neighbours import NEIGHBOUR
from partage_plugins.testing.node_stage import NodeStage, host_of
from partage_plugins.testing.scheduler_stage import SchedulerStage


@check("node", "grants")
def adjusts_the_same_twice(case: Case) -> None:
    """For the same container it returns the same changes, also from a new instance: a call may be repeated."""
    root, given = PurePosixPath(case.root()), granted_containers(case)
    stage = NodeStage(case).started(root=root)
    first = [stage.adjusted(each) for each in given]
    hold([stage.adjusted(each) for each in given] == first, "partage_adjust answers differently for the same container")
    again = NodeStage(case).started(root=root)
    hold([again.adjusted(each) for each in given] == first, "partage_adjust of a new instance answers differently")


@check("node", "grants")
def adjusting_changes_no_input(case: Case) -> None:
    """Container, grants and inventory are shared with other plugins: it modifies none of them."""
    stage = NodeStage(case).started()
    for each in granted_containers(case):
        granted = each.typed(stage.registry.kinds)
        with (
            unchanged("partage_adjust", "the container", each.container),
            unchanged("partage_adjust", "grants", granted),
        ):
            stage.own_adjustment(each.container, granted)


@check("node", "grants")
def enforces_what_grants_promise(case: Case) -> None:
    """Every promise of its grants is enforced once the changes are applied."""
    stage = NodeStage(case).started()
    for each in granted_containers(case):
        broken = stage.adjusted(each).unenforced
        said = "; ".join(f"{', '.join(promises)} of {kind}" for kind, promises in sorted(broken.items()))
        hold(not broken, f"its grants promise what partage_adjust does not enforce: {said}")


@check("node", "grants")
def leaves_other_containers_alone(case: Case) -> None:
    """It does not change a container that was only granted other kinds."""
    stage = NodeStage(case).started()
    grants: dict[Kind, object] = {NEIGHBOUR.name: msgspec.Raw(b'[{"device":"n0"}]')}
    parts: dict[Kind, object] = {NEIGHBOUR.name: msgspec.Raw(b'{"devices":["n0"]}')}
    other = GrantedContainer(examples.container(), Granted(gen=1, grants=grants, parts=parts))
    adjusted = stage.adjusted(other)
    set_fields = ", ".join(adjusted.owners) or "enforcement"
    hold(adjusted.adjustment == Adjustment(), f"partage_adjust sets {set_fields} where its kind was not granted")


@check("node", "grants")
def is_removed_after_adjusting(case: Case) -> None:
    """It accepts the removal of an adjusted container twice, and can adjust it again afterwards."""
    stage = NodeStage(case).started()
    for each in granted_containers(case):
        first = stage.adjusted(each)
        for _ in range(2):
            stage.framework.removed(each.container.key)
        hold(stage.adjusted(each) == first, "partage_adjust answers differently after partage_removed")


@check("node", "grants")
def works_in_the_plugin_host(case: Case) -> None:
    """In the plugin host's process it behaves the same, and its results can be encoded."""
    with host_of(case) as host:
        hold(not host.started.faults, "; ".join(host.started.faults))
        for each in granted_containers(case):
            first = host.adjust(each.container, each.granted)
            hold(
                host.adjust(each.container, each.granted) == first, "partage_adjust answers differently the second time"
            )
            host.removed(each.container.key)


@check("node", "grants", "kind")
def refuses_where_its_kind_is_missing(case: Case) -> None:
    """It refuses, with a sentence, a grant on a node whose inventory has nothing of the kind."""
    for each in granted_containers(case):
        parts = {kind: part for kind, part in each.granted.parts.items() if kind != case.subject.kind}
        _check_refused(case, each._replace(granted=replace(each.granted, parts=parts)), "where nothing of it exists")


@check("node", "grants", "kind")
def refuses_unknown_devices(case: Case) -> None:
    """It refuses, with a sentence, a grant of a device that the node's inventory does not contain."""
    kinds, kind = NodeStage(case).registry.kinds, Kind(case.subject.kind or "")
    for each in granted_containers(case):
        for unknown in _granted_unknown_devices(each, kind, kinds):
            what = msgspec.json.encode(unknown.granted.grants[kind]).decode()
            _check_refused(case, unknown, f"{what:.200}, which its inventory does not have")


def _check_refused(case: Case, each: GrantedContainer, what: str) -> None:
    stage = NodeStage(case).started()
    try:
        stage.adjusted(each)
    except Refused:
        return
    raise Broken(f"partage_adjust accepts a grant {what}")


def _granted_unknown_devices(
    each: GrantedContainer, kind: Kind, kinds: tuple[AnyKind, ...]
) -> Iterator[GrantedContainer]:
    """The container, with each of its devices in turn replaced by one that the node does not have."""

    def granted(text: bytes) -> GrantedContainer:
        return each._replace(granted=replace(each.granted, grants={**each.granted.grants, kind: msgspec.Raw(text)}))

    def is_valid(text: bytes) -> bool:
        try:
            granted(text).typed(kinds)
        except DecodeError:
            return False
        return True

    grants, part = (msgspec.json.encode(raw.get(kind)) for raw in (each.granted.grants, each.granted.parts))
    yield from map(granted, with_unknown_devices(grants, part, is_valid))


@check("scheduler", "node", "kind")
def both_sides_own_one_kind(case: Case) -> None:
    """Both sides declare the same kind: its name, and the fields of its three types."""
    scheduler, node = SchedulerStage(case).kind, NodeStage(case).kind
    hold(scheduler.name == node.name, f"the kinds are {scheduler.name} and {node.name}")
    for what in ("request", "grant", "part"):
        ours, theirs = _fields(getattr(scheduler, what)), _fields(getattr(node, what))
        hold(ours == theirs, f"the {what} of kind {node.name} has {ours} in the scheduler and {theirs} on the node")


@check("scheduler", "node", "kind")
def what_is_granted_is_applied(case: Case) -> None:
    """When its grants are allocated, encoded, signed, verified, decoded and adjusted, they are enforced."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key()
    with host_of(case) as host:
        hold(case.subject.kind in host.started.kinds, "; ".join(host.started.faults) or "it owns no kind")
        for allocation, containers in placed_pods(case):
            verify(allocation, sign(allocation, private), {key_id(public): public})
            for each in containers:
                adjusted = host.adjust(each.container, each.granted)
                hold(not adjusted.unenforced, f"partage_adjust does not enforce {dict(adjusted.unenforced)}")
                host.removed(each.container.key)


def _fields(what: Any) -> list[tuple[str, str, bool]]:  # noqa: ANN401  any kind's type
    return [(field.encode_name, str(field.type), field.required) for field in msgspec.structs.fields(what)]


def with_unknown_devices(grants: bytes, part: bytes, is_valid: Callable[[bytes], bool]) -> Iterator[bytes]:
    """The grants as JSON, once for each device name in them: replaced by one not in the inventory's part."""
    known = _strings(part)
    for name in sorted(_strings(grants) & known):
        for unknown in _alike(name):
            changed = grants.replace(msgspec.json.encode(name), msgspec.json.encode(unknown))
            if unknown not in known and is_valid(changed):
                yield changed
                break


def _alike(name: str) -> Iterator[str]:
    """Similar names: digits replaced by other digits, or else letters by other letters; then longer names."""
    alphabet = digits if re.search("[0-9]", name) else ascii_lowercase
    for step in range(1, len(alphabet)):
        yield name.translate(str.maketrans(alphabet, alphabet[step:] + alphabet[:step]))
    for letter in alphabet:
        yield name + letter
        yield name + letter * 2


def _strings(text: bytes) -> set[str]:
    """All strings in a JSON text."""
    found: set[str] = set()
    waiting: list[object] = [msgspec.json.decode(text)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found
