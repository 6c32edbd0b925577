"""The node side's typed interface to its plugins, used in the advertiser's process and in crishim's plugin host.

Every value that a plugin returns is checked here, and the results are merged; an error names the plugin and the hook.
Starting and stopping call every plugin even if one fails; the errors are returned, for the caller to report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from partage_plugins.api.containers import Adjustment, Container, Granted
from partage_plugins.api.kinds import PROMISES, AnyKind, Promise
from partage_plugins.api.names import ContainerKey, Kind, PluginName
from partage_plugins.api.node import DeviceUse, Gauge, NodeContext
from partage_plugins.errors import PartageError, PluginError, PluginNonsense, Refused
from partage_plugins.registry.calls import Activity, Call, bound
from partage_plugins.registry.registry import Registry
from partage_plugins.rules.enforcement import unenforced
from partage_plugins.rules.merge import Owners, checked, merge


class Adjusted(Struct, frozen=True, kw_only=True):
    """All plugins' changes to one container, the owners of each, and the promises that no plugin enforces."""

    adjustment: Adjustment
    owners: Owners = {}
    unenforced: Mapping[Kind, tuple[Promise, ...]] = {}


class NodeFramework:
    """The calls that a node's daemons make to their plugins."""

    def __init__(self, registry: Registry, *, activity: Activity | None = None, traced: bool = False) -> None:
        self.activity = activity or Activity()
        self._registry = registry
        self._calls = {hook: bound(registry, hook, self.activity, traced=traced) for hook in registry.hooks}
        self._failed: frozenset[str] = frozenset()
        self._kinds = tuple(replace(kind, promises=partial(self._promised, kind)) for kind in registry.kinds)
        self.owners: Mapping[Kind, PluginName] = self._in_force()
        """The kinds that have a working owner."""

    def started(self, context: NodeContext) -> list[PluginError]:
        """Starts the plugins; one that fails is not called again, and its kind has no working owner."""
        faults = self._ask_all("partage_started", context)
        self._failed = frozenset(fault.plugin for fault in faults)
        for hook, calls in self._calls.items():
            self._calls[hook] = tuple(call for call in calls if call.plugin not in self._failed)
        self.owners = self._in_force()
        return faults

    def stopping(self) -> list[PluginError]:
        return self._ask_all("partage_stopping")

    def discover(self, in_use: Sequence[DeviceUse] | None) -> dict[Kind, object]:
        """Each kind's part of the inventory, from its owner; kinds without devices on this node are left out."""
        parts: dict[Kind, object] = {}
        for call in self._calls["partage_discover"]:
            part = call(in_use)
            if part is not None:
                kind = self._owned(call)
                parts[kind] = self._checked_part(call, kind, part)
        return parts

    def samples(self) -> list[Gauge]:
        gauges: list[Gauge] = []
        for call in self._calls["partage_samples"]:
            gauges += _converted(call, call(), list[Gauge])
        return gauges

    def adjust(self, container: Container, granted: Granted) -> Adjusted:
        """All plugins' changes to a container; refused if one of its granted kinds has no working owner here."""
        for kind_name in sorted(granted.grants):
            if kind_name not in self.owners:
                raise Refused(f"partage: no plugin for {kind_name} is in force on this node; see the logs of crishim")
        answers: list[tuple[PluginName, Adjustment]] = []
        for call in self._calls["partage_adjust"]:
            answer = checked(call.plugin, call(container, granted))
            if answer is not None:
                answers.append((call.plugin, answer))
        adjustment, owners = merge(answers)
        broken = unenforced(granted, adjustment, self._kinds)
        return Adjusted(adjustment=adjustment, owners=owners, unenforced=broken)

    def removed(self, key: ContainerKey) -> None:
        """Cleans up after a container; calls every plugin, then raises the first error, or else the first refusal."""
        refusals = list[Refused]()
        for error in (*self._ask_all("partage_removed", key, refusals=refusals), *refusals):
            raise error

    def _in_force(self) -> dict[Kind, PluginName]:
        owners = ((kind.name, self._registry.owner(kind.name)) for kind in self._registry.kinds)
        return {kind: owner for kind, owner in owners if owner is not None and owner not in self._failed}

    def _ask_all(self, hook: str, *arguments: object, refusals: list[Refused] | None = None) -> list[PluginError]:
        """`refusals` collects refusals; None if plugins may not refuse."""
        faults: list[PluginError] = []
        for call in self._calls[hook]:
            try:
                call(*arguments)
            except PluginError as fault:
                faults.append(fault)
            except PartageError as refusal:
                if refusals is not None and isinstance(refusal, Refused):
                    refusals.append(refusal)
                else:
                    faults.append(PluginNonsense(call.plugin, hook, "refused where it may not", str(refusal)))
        return faults

    def _promised(self, kind: AnyKind, grant: object, part: object) -> frozenset[Promise]:
        """The promises of a grant: computed by the owner's code, so called and checked like a hook."""
        owner = self._registry.owner(kind.name) or PluginName("")
        answer: object = Call(owner, "promises", kind.promises, self.activity)(grant, part)
        if not isinstance(answer, AbstractSet) or not answer <= PROMISES:
            allowed = f"a set of {', '.join(sorted(PROMISES))}"
            raise PluginNonsense(owner, "promises", "returned no promises", f"{answer!r:.80}; allowed: {allowed}")
        return frozenset(answer)

    def _owned(self, call: Call) -> Kind:
        for kind in self._registry.kinds:
            if self._registry.owner(kind.name) == call.plugin:
                return kind.name
        raise PluginNonsense(call.plugin, call.hook, "returned a part of the inventory but owns no kind")

    def _checked_part(self, call: Call, name: Kind, part: object) -> object:
        kind = self._registry.kind(name)
        if kind is None or not isinstance(part, kind.part):
            allowed = kind.part.__name__ if kind else "nothing"
            raise PluginNonsense(call.plugin, call.hook, f"returned {type(part).__name__}; allowed: {allowed} or None")
        return _converted(call, part, kind.part)


def _converted(call: Call, answer: object, type_: Any) -> Any:  # noqa: ANN401  any kind's type
    """The value with every field checked: structs created in Python are not validated."""
    try:
        return msgspec.convert(msgspec.to_builtins(answer), type_)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise PluginNonsense(call.plugin, call.hook, "returned a wrong value", str(error)) from None
