"""The mechanisms that defeat the siege, and how to remove each from a copy of the sources. Pure.

A soak that can't fail shows nothing. So each mechanism has the text that removes it, and the verdict that must fail
without it. If one mechanism is behind another, both are removed: `behind` names those in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from soak.siege.verdicts import Verdict


@dataclass(frozen=True)
class Edit:
    """One piece of text, which is in its file exactly once, and its replacement."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    what: str
    fails: tuple[Verdict, ...]
    edits: tuple[Edit, ...]
    behind: tuple[str, ...] = ()


def _without_policy(name: str) -> Edit:
    binding = f"  policyName: {name}\n  validationActions: "
    return Edit("manifests/scheduler/admission.yaml", f"{binding}[Deny]", f"{binding}[Audit]")


_GATE: Final = "isolation/preload/compute"
_PREDICATES: Final = "scheduler/partage_scheduler/predicates"

MECHANISMS: Final[Mapping[str, Mechanism]] = {
    "admission": Mechanism(
        what="The API server refuses what only the scheduler may write, nodes that pods choose, and names of devices.",
        fails=(Verdict.REFUSED,),
        edits=tuple(map(_without_policy, ("partage-allocations", "partage-shares", "partage-cdi"))),
    ),
    "words": Mechanism(
        what="The API server refuses nodes that pods choose also where they ask by another's words.",
        fails=(Verdict.REFUSED,),
        edits=(
            Edit(
                "manifests/chart/templates/_helpers.tpl",
                "{{- range get $words .Values.nvidiaGpu }} || name == 'nvidia.com/{{ . }}'{{ end }}\n",
                "",
            ),
        ),
    ),
    "depth": Mechanism(
        what="A pod is read whatever the depth of what nobody reads of it.",
        fails=(Verdict.WATCHES,),
        edits=(
            Edit(
                "base/partage_base/kube/answers.py",
                'return cast("T", decoder.decode(shallow(bytes(body))))\n',
                'return cast("T", decoder.decode(bytes(body)))\n',
            ),
        ),
    ),
    "texts": Mechanism(
        what="No text that is longer than any amount is remembered.",
        fails=(Verdict.MEMORY, Verdict.LIVES),
        edits=(
            Edit(
                "plugins/partage_plugins/codecs/quantity.py",
                "_number(text) if len(text) <= _LONGEST else None",
                "_number(text)",
            ),
        ),
    ),
    "rows": Mechanism(
        what="A container, and a namespace, has no more than a part of the broker's rows.",
        fails=(Verdict.BROKER,),
        edits=(
            Edit(
                "isolation/partage_isolation/store/row_bounds.py",
                "        has_one = of_owner * OWNER_PART < free and of_namespace * NAMESPACE_PART < free\n",
                "        has_one = is_any and of_owner >= 0 and of_namespace >= 0\n",
            ),
        ),
    ),
    "verified": Mechanism(
        what="What was verified for a pod counts until the pod is gone, whatever its annotations say later.",
        fails=(Verdict.CARDS,),
        behind=("admission",),
        edits=(
            Edit(
                "scheduler/partage_scheduler/cluster/verified.py",
                "        notes = notes_of(pod)\n",
                "        notes, before = notes_of(pod), None\n",
            ),
            Edit(
                "scheduler/partage_scheduler/cluster/verified.py",
                "        unknown = self._asks(pod) if before is None else before.unknown\n",
                "        unknown = None\n",
            ),
        ),
    ),
    "lines": Mechanism(
        what="A watch reads lines as long as the API server writes them, and passes over what is longer.",
        fails=(Verdict.WATCHES,),
        edits=(
            Edit(
                "base/partage_base/kube/events.py",
                "LONGEST_LINE_BYTES: Final = 10 << 20",
                "LONGEST_LINE_BYTES: Final = 8 << 20",
            ),
            Edit(
                "base/partage_base/kube/events.py",
                '        if undecodable_line(head, "") is None:\n',
                "        if head:\n",
            ),
        ),
    ),
    "oldest": Mechanism(
        what="Of too many idle connections the oldest goes, so that a probe is answered.",
        fails=(Verdict.LIVES,),
        edits=(
            Edit(
                "base/partage_base/acceptor.py",
                "        self.go(oldest, whose)\n        return oldest\n",
                "        self.go(guest, origin)\n        return guest if oldest is not guest else oldest\n",
            ),
        ),
    ),
    "before-tls": Mechanism(
        what="The extender counts connections before their TLS handshake, which has a short time.",
        fails=(Verdict.CONNECTIONS,),
        edits=(
            Edit(
                "scheduler/partage_scheduler/extender/server.py",
                "        made = Connection(self)\n",
                "        made = Connection(self)\n        guest.known()\n",
            ),
            Edit(
                "scheduler/partage_scheduler/extender/server.py",
                "HANDSHAKE_S: Final = 2.5",
                "HANDSHAKE_S: Final = 10.0",
            ),
        ),
    ),
    "bounds": Mechanism(
        what="A pod that says more than is read waits, and what is beyond the bounds is not kept.",
        fails=(Verdict.EXCESS,),
        edits=(
            Edit(
                "scheduler/partage_scheduler/objects/pods.py",
                "        found = excess(metadata, spec, self.bytes)\n",
                '        found = excess(metadata, spec, 0) and ""\n',
            ),
        ),
    ),
    "bytes": Mechanism(
        what="What is remembered is bounded by bytes, and a label that no node has costs nothing.",
        fails=(Verdict.MEMORY, Verdict.LIVES),
        behind=("bounds",),
        edits=(
            Edit(
                "plugins/partage_plugins/cache.py",
                "        while self.bytes + size_bytes > self._most_bytes:\n",
                "        while not self._answers and self.bytes:\n",
            ),
            Edit(
                "plugins/partage_plugins/cache.py",
                "        if size_bytes > self._most_bytes:\n",
                "        if size_bytes < 0:\n",
            ),
            Edit(f"{_PREDICATES}/nodes.py", "        if key in self._keys:\n", "        if key:\n"),
        ),
    ),
    "turns": Mechanism(
        what="Among pods of one priority namespaces take turns.",
        fails=(Verdict.WAITS,),
        edits=(
            Edit(
                "scheduler/partage_scheduler/queue/fair_queue.py",
                "        namespace, order = group.namespace, group.order\n",
                '        namespace, order = "", group.order\n',
            ),
        ),
    ),
    "exclusion": Mechanism(
        what="Who keeps others off a card asks for all of it.",
        fails=(Verdict.EXCLUSION,),
        edits=(
            Edit(
                "plugins/gpu/partage_gpu/allocator/plan.py",
                "    if trusted.isdisjoint((namespace, EVERY_NAMESPACE)):\n",
                "    if trusted.isdisjoint((namespace, EVERY_NAMESPACE)) and not namespace:\n",
            ),
        ),
    ),
    "grace": Mechanism(
        what="A pod that is told to go and takes years counts as one that stays.",
        fails=(Verdict.URGENT,),
        edits=(
            Edit(
                "scheduler/partage_scheduler/preemption/victims.py",
                "        return now - OVERDUE_S < ends <= now + self._longest_grace_s\n",
                "        return now - OVERDUE_S < ends\n",
            ),
        ),
    ),
    "prefixes": Mechanism(
        what="The guard compares beginnings of paths as NVIDIA's toolkit does.",
        fails=(Verdict.NOTHING,),
        edits=(
            Edit(
                "plugins/partage_plugins/api/nvidia.py",
                "if path.startswith(MOUNTED) else None",
                'if path.startswith(f"{MOUNTED}/") else None',
            ),
        ),
    ),
    "contexts": Mechanism(
        what="A launch in a context that was made past the library is metered.",
        fails=(Verdict.CARD_TIME,),
        edits=(
            Edit(
                f"{_GATE}/gate.c",
                "    if (kind == GATE_UNKNOWN) return beside_calm && !atomic_load(&gate->reached);\n",
                "    (void)beside_calm;\n    if (kind == GATE_UNKNOWN) return !atomic_load(&gate->reached);\n",
            ),
        ),
    ),
    "captures": Mechanism(
        what="A stream of which an open capture hides what runs is not taken for idle.",
        fails=(Verdict.CARD_TIME,),
        edits=(
            Edit(
                f"{_GATE}/drain.c",
                "    if (standing == NOT_YET || DRIVER(",
                "    if (standing == NOT_YET) return true;\n    if (DRIVER(",
            ),
            Edit(
                f"{_GATE}/events.c",
                "    return DRIVER(REAL(cuStreamIsCapturing)(stream, &status)) == CUDA_SUCCESS && !status;\n",
                "    (void)stream;\n    return status != 0;\n",
            ),
            Edit(
                f"{_GATE}/capture.c",
                "    os_lock(&lifetimes);\n    forget(&origin);\n",
                "    (void)origin;\n    os_lock(&lifetimes);\n",
            ),
        ),
    ),
    "inside": Mechanism(
        what="A launch from which the driver has not returned is work.",
        fails=(Verdict.CARD_TIME,),
        edits=(
            Edit(
                f"{_GATE}/drain.c",
                "    if (gate_card(lane->gate) != inside->card) return;\n",
                "    if (gate_card(lane->gate) != inside->card || inside->card < MOST_CARDS) return;\n",
            ),
            Edit(
                f"{_GATE}/drain.c",
                "    const bool is_inside = atomic_load(&lane->inside);\n",
                "    const bool is_inside = false;\n",
            ),
        ),
    ),
    "domains": Mechanism(
        what="Memory of a part of a card is that card's.",
        fails=(Verdict.CARD_MEMORY,),
        edits=(
            Edit(
                "isolation/preload/memory/devices.c",
                "    case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN: return card_of(location->id & 0xff);\n",
                "    case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN: return HOST_MEMORY;\n",
            ),
        ),
    ),
    "managed-pools": Mechanism(
        what="Pools of managed memory are charged in full.",
        fails=(Verdict.CARD_MEMORY,),
        edits=(
            Edit(
                "isolation/preload/memory/devices.c",
                "return type == CU_MEM_ALLOCATION_TYPE_PINNED ? HOST_MEMORY : card_of_managed();",
                "return type == CU_MEM_ALLOCATION_TYPE_PINNED || card_of_managed() < NO_CARD ? HOST_MEMORY : NO_CARD;",
            ),
        ),
    ),
}


def all_of(names: Iterable[str]) -> tuple[str, ...]:
    """These and those in front of them, each once."""
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys((*all_of(MECHANISMS[name].behind), name))
    return tuple(found)
